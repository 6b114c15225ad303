// New rows from a text of separated values, checked as in tsee.files and refused in the same words.

const MISSING = new Set(['', 'na', 'n/a', 'nan', 'null', 'none', '#n/a', '<na>', '?', '-nan']);
const NUMBER = /^\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*$/i;
const DECIMAL_COMMA = /^\s*[+-]?\d*,\d+(e[+-]?\d+)?\s*$/i;
const IDENTIFIER =
  /^(.*[_\-. ])?(id|ids|idx|index|key|uuid|guid|barcode|name|rowid|rownames)$|^unnamed: 0$|^__index_level_\d+__$/i;
// The first fields, which decide the types of the columns.
const FIRST_FIELDS = 2 ** 18;

export class BadData extends Error {}

export const isMissing = (field) => MISSING.has(field.trim().toLowerCase());

// { names, rows: [fields], lines: [the line where each row begins], headless, decimal: '.' or ',' }
export function readTable(text, source) {
  if (text.startsWith('\ufeff')) text = text.slice(1);
  const head = /^.*\S.*$/m.exec(text)?.[0] ?? '';
  if (text.slice(0, 65536).includes('\0')) {
    throw new BadData(`${quoted(source)} is not a text of separated values: save the data as CSV.`);
  }
  const delimiter = delimiterOf(head, source);
  const records = [];
  const lines = [];
  for (const [fields, line] of recordsOf(text, delimiter, source)) {
    records.push(fields);
    lines.push(line);
  }
  const { decimal, mixed } = decimalOf(records, delimiter);
  const headless = records.length > 0 && isData(records[0], decimal);
  const names = headless
    ? records[0].map((_, i) => `column${i + 1}`)
    : namesOf((records[0] ?? []).map((name, i) => (i === 0 ? name.replace(/^#+/, '') : name)), source);
  if (!headless) {
    records.shift();
    lines.shift();
  }
  if (!records.length) throw new BadData(`${quoted(source)} has no rows of data: is it the right file?`);
  records.forEach((record, i) => {
    if (record.length !== names.length) {
      throw new BadData(
        `${quoted(source)}, row ${i} (line ${lines[i]}) has ${record.length} fields where the ` +
          `${headless ? 'first row' : 'header'} has ${names.length}: is a separator or a quote missing? Correct that line.`,
      );
    }
  });
  return { names, rows: records, lines, headless, delimiter, decimal, mixed, source };
}

// The positions of the features in the order of the model, and of the other columns.
export function matchColumns(table, model) {
  const { names, source } = table;
  if (model.table) return matchTable(table, model.table);
  let features;
  if (model.features && !(table.headless && names.length === model.nFeatures)) {
    features = positionsOf(model.features, names, source);
  } else {
    features = names.map((_, i) => i);
    if (names.length !== model.nFeatures) features = features.filter((i) => isFeature(table, i));
    if (features.length !== model.nFeatures) {
      if (table.mixed) {
        throw new BadData(`${quoted(source)} mixes decimal commas and decimal points: write all numbers with a point.`);
      }
      throw new BadData(
        `${quoted(source)} has ${features.length} numeric column${features.length === 1 ? '' : 's'}, but the map was ` +
          `learned from ${model.nFeatures} features: give the same columns in the same order.`,
      );
    }
  }
  const taken = new Set(features);
  return { features, aside: names.map((_, i) => i).filter((i) => !taken.has(i)) };
}

// The columns of a table that is encoded. If it has no names, or the map knows none, all of them count by their order.
function matchTable({ names, headless, source }, { columns, order, named }) {
  const byOrder = (headless || !named) && names.length === order.length;
  const features = positionsOf(columns.map(({ name }) => name), byOrder ? order : names, source);
  return { features, aside: names.map((_, i) => i) }; // all of them are shown: they have words
}

function positionsOf(asked, names, source) {
  const positions = new Map(names.map((name, i) => [name, i]));
  const missing = asked.filter((name) => !positions.has(name));
  if (missing.length) {
    const others = names.filter((name) => !asked.includes(name));
    const close = [...new Set(missing.slice(0, 8).flatMap((name) => closeTo(name, others)))];
    const hint = close.length ? `did you mean ${listed(close)}?` : `it has ${listed(names)}.`;
    throw new BadData(`${quoted(source)} has no column${missing.length > 1 ? 's' : ''} ${listed(missing)}: ${hint}`);
  }
  return asked.map((name) => positions.get(name));
}

// The features of rows `from` to `to`, as numbers.
export function numbersOf(table, features, from, to) {
  const width = features.length;
  const values = new Float64Array((to - from) * width);
  for (let row = from; row < to; row++) {
    const fields = table.rows[row];
    for (let i = 0; i < width; i++) {
      const field = pointed(fields[features[i]], table.decimal);
      const value = Number(field);
      // Number also takes blanks and 0x10.
      const good = field.length === 1 ? field > ' ' : NUMBER.test(field);
      if (!good || value - value !== 0) refuseField(table, row, features[i]);
      values[(row - from) * width + i] = value;
    }
  }
  return values;
}

function refuseField(table, row, column) {
  const field = table.rows[row][column];
  const where = `${quoted(table.source)}, row ${row} (line ${table.lines[row]}), column ${quoted(table.names[column])}`;
  if (isMissing(field)) {
    const what = field.trim() ? ` (${quoted(field.trim())})` : '';
    throw new BadData(`${where}: the value is missing${what}: fill it in, or remove that row.`);
  }
  const infinite = isNumber(field, table.decimal);
  let advice = 'correct it.';
  if (table.mixed) advice = 'the file mixes decimal commas and decimal points. Write all numbers with a point.';
  else if (table.decimal === ',' && NUMBER.test(field)) advice = 'the file has decimal commas. Write this one with a comma, too.';
  throw new BadData(`${where}: ${quoted(field.slice(0, 40))} is not a ${infinite ? 'finite ' : ''}number: ${advice}`);
}

function* recordsOf(text, delimiter, source) {
  let at = 0;
  let line = 1;
  let quote = -1; // the position of the next one
  const fault = (from, what) =>
    new BadData(`${quoted(source)}, line ${from}: ${what}. Is a quote not closed? Correct that line.`);
  while (at < text.length) {
    let end = text.indexOf('\n', at);
    if (end < 0) end = text.length;
    if (quote < at) quote = text.indexOf('"', at);
    if (quote < 0) quote = text.length; // do not search again
    if (quote >= end) {
      let content = text.slice(at, end);
      if (content.endsWith('\r')) content = content.slice(0, -1);
      if (content) yield [content.split(delimiter), line];
      at = end + 1;
      line++;
      continue;
    }
    // A record with quotes may span several lines.
    const fields = [];
    const first = line;
    for (let ended = false; !ended; ) {
      let field = '';
      if (text[at] === '"') {
        for (at++; ; ) {
          const close = text.indexOf('"', at);
          if (close < 0) throw fault(first, 'unexpected end of data');
          field += text.slice(at, close);
          at = close + 1;
          if (text[at] !== '"') break;
          field += '"';
          at++;
        }
        line += field.split('\n').length - 1;
        const next = text[at];
        if (next !== undefined && next !== delimiter && next !== '\n' && next !== '\r') {
          throw fault(first, `'${delimiter}' expected after '"'`);
        }
      } else {
        const from = at;
        while (at < text.length && text[at] !== delimiter && text[at] !== '\n') at++;
        field = text.slice(from, at);
        if (text[at] !== delimiter && field.endsWith('\r')) field = field.slice(0, -1);
      }
      if (text[at] === '\r') at++;
      fields.push(field);
      ended = text[at] !== delimiter;
      at++;
    }
    line++;
    yield [fields, first];
  }
}

// The most frequent separator in the first line.
function delimiterOf(line, source) {
  if (/\.(tsv|tab)(\.gz)?$/i.test(source)) return '\t';
  const bare = line.replace(/"[^"]*"/g, '');
  let best = ',';
  let most = 0;
  for (const mark of ['|', ';', ',', '\t']) {
    const count = bare.split(mark).length - 1;
    if (count > most) [best, most] = [mark, count];
    // In a first line of numbers with decimal commas, commas can be more frequent than the separator.
    if (mark !== ',' && count && line.split(mark).every((field) => isNumber(field, ','))) return mark;
  }
  return best;
}

// If commas do not separate the fields, they can be decimal commas: they are if there are numbers with a comma and none
// with a decimal point.
function decimalOf(records, delimiter) {
  let commas = false;
  let points = false;
  if (delimiter !== ',') {
    for (const record of records.slice(0, firstRows(records[0] ?? []))) {
      for (const field of record) {
        if (field.includes(',')) commas ||= DECIMAL_COMMA.test(field);
        else if (field.includes('.')) points ||= NUMBER.test(field);
      }
    }
  }
  return { decimal: commas && !points ? ',' : '.', mixed: commas && points };
}

// The number of first rows, which decide the types of the columns.
const firstRows = (record) => Math.max(1, Math.floor(FIRST_FIELDS / Math.max(1, record.length)));

// A field with a decimal point instead of a decimal comma. In a file with decimal commas, 1.234 could mean 1234, so it
// is not a number.
export function pointed(field, decimal) {
  if (decimal === '.') return field;
  return field.includes('.') ? 'ambiguous' : field.replace(',', '.');
}

export function isNumber(field, decimal) {
  return NUMBER.test(pointed(field, decimal)) || /^\s*[+-]?inf(inity)?\s*$/i.test(field);
}

// Whether a first row is data instead of names: all numbers, but not the numbers of the columns.
function isData(record, decimal) {
  if (!record.every((field) => isNumber(field, decimal))) return false;
  const counts = (first) => record.every((field, i) => field.trim() === String(first + i));
  return record.length === 1 || !(counts(0) || counts(1));
}

// Whether a column is a feature: mostly numbers, and not a number for each row.
function isFeature(table, column) {
  const values = table.rows.slice(0, firstRows(table.names)).map((row) => row[column]);
  if (!mostlyNumbers({ ...table, rows: table.rows.slice(0, values.length) }, column)) return false;
  const name = table.names[column];
  const numbersRows = IDENTIFIER.test(name) || /[a-z]I[dD]$/.test(name);
  return !(numbersRows && values.every((value) => /^\s*[-+]?\d+\s*$/.test(value)) && new Set(values).size === values.length);
}

// Whether more than half of the values of a column are numbers, not counting missing ones.
export function mostlyNumbers(table, column) {
  const numbers = table.rows.filter((row) => isNumber(row[column], table.decimal)).length;
  const missing = table.rows.filter((row) => isMissing(row[column])).length;
  return numbers > 0 && 2 * numbers > table.rows.length - missing;
}

// The names in a header, which must differ; columns without a name get one.
function namesOf(header, source) {
  const written = header.map((name) => name.trim()).filter(Boolean);
  const given = new Set(written);
  const repeated = [...given].filter((name) => written.indexOf(name) !== written.lastIndexOf(name));
  if (repeated.length) {
    throw new BadData(
      `${quoted(source)} has several columns named ${listed(repeated)}: rename them in the header so that all names differ.`,
    );
  }
  const taken = new Set();
  return header.map((raw, position) => {
    let name = raw.trim();
    if (!name) name = position === 0 && !given.has('index') ? 'index' : `column${position + 1}`;
    const base = name;
    for (let count = 1; taken.has(name); count++) name = `${base}.${count}`;
    taken.add(name);
    return name;
  });
}

function closeTo(name, known) {
  const bare = (text) => text.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '');
  const most = Math.max(1, Math.floor(name.length / 4));
  return known.filter((other) => bare(other) === bare(name) || edits(name.slice(0, 60), other.slice(0, 60)) <= most).slice(0, 2);
}

function edits(a, b) {
  let above = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      row[j] = Math.min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1));
    }
    above = row;
  }
  return above[b.length];
}

// A text as Python's repr writes it.
export function quoted(text) {
  const bare = text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('\r', '\\r').replaceAll('\t', '\\t');
  return bare.includes("'") && !bare.includes('"') ? `"${bare}"` : `'${bare.replaceAll("'", "\\'")}'`;
}

function listed(names, most = 8) {
  const more = names.length > most ? ` and ${names.length - most} more` : '';
  return names.slice(0, most).map(quoted).join(', ') + more;
}
