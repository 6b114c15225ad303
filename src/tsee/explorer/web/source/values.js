// The values of a column as words, numbers, dates and tags: the counterpart of tables/kinds.py. A value is a number or a
// text, as `typedColumn` in encoding.js gives it.

const MAX_WORD = 1000;
// What Python takes for white space; JavaScript's \s differs.
const SPACE = '[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]+';
const SPACES = new RegExp(SPACE);
const ENDS = new RegExp(`^${SPACE}|${SPACE}$`, 'g');
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
const DATE = /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(\.\d+)?)?(?:(Z)|([+-])(\d\d):?(\d\d))?)?$/;
const OTHER_DATE = /^(\d{1,2})([./])(\d{1,2})\2(\d{4})$/;
const BOOLEANS = { true: 1, yes: 1, 1: 1, false: 0, no: 0, 0: 0 };

export const stripped = (text) => text.replace(ENDS, '');
export const words = (text) => text.split(SPACES).filter(Boolean);

export function textOf(value) {
  if (typeof value === 'number') return writtenNumber(value);
  const text = words(value).join(' ');
  return text.length > MAX_WORD ? Array.from(text).slice(0, MAX_WORD).join('') : text;
}

// A number as Python writes it; whole ones without a point.
function writtenNumber(value) {
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 2 ** 53) return String(value === 0 ? 0 : value);
  if (size >= 1e-4 && size < 1e16) return Number.isInteger(value) ? `${value}.0` : String(value);
  const [digits, power] = value.toExponential().split('e');
  return `${digits}e${power[0]}${power.slice(1).padStart(2, '0')}`;
}

// Each of these is null if the value is none.

export function numberOf(value) {
  const number = typeof value === 'number' ? value : NUMBER.test(stripped(value)) ? Number(value) : NaN;
  return Number.isFinite(number) ? number : null;
}

export const booleanOf = (value) => BOOLEANS[textOf(value).toLowerCase()] ?? null;

// Days since 1970.
export function dateOf(value) {
  if (typeof value === 'number') return null;
  const text = stripped(value);
  const other = OTHER_DATE.exec(text);
  if (other) {
    const [, first, mark, second, year] = other;
    return mark === '.' ? dayOf(year, second, first) : dayOf(year, first, second);
  }
  const found = DATE.exec(text);
  if (!found) return null;
  const [, year, month, date, hours = 0, minutes = 0, seconds = 0, fraction = '', , sign, off = 0, offMinutes = 0] = found;
  const day = dayOf(year, month, date);
  if (day === null || hours > 23 || minutes > 59 || seconds > 59 || off > 23 || offMinutes > 59) return null;
  const zone = (sign === '-' ? -60 : 60) * (60 * off + Number(offMinutes));
  const time = 3600 * hours + 60 * minutes + Number(seconds) - zone;
  return day + (time + Number(`0${fraction.slice(0, 7)}`)) / 86_400;
}

function dayOf(year, month, date) {
  const found = new Date(0);
  found.setUTCFullYear(Number(year), month - 1, Number(date));
  const same = found.getUTCMonth() === month - 1 && found.getUTCDate() === Number(date);
  return same && Number(year) > 0 ? found.getTime() / 86_400_000 : null;
}

export function tagsOf(value) {
  const parts = typeof value === 'number' ? [value] : value.split(/[|;]/);
  return [...new Set(parts.map(textOf).filter(Boolean))];
}
