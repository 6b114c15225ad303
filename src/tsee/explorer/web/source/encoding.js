// A table with words, dates and gaps as rows of numbers: the counterpart of tables/encoding.py and files/mixed.py.

import { BadData, isMissing, isNumber, mostlyNumbers, pointed, quoted } from './csv.js';
import { encoderOf } from './encoders.js';
import { GapFiller } from './gaps.js';
import { stripped } from './values.js';

// The values of a column: numbers if all that are there are, otherwise texts; null for a gap.
function typedColumn(table, column) {
  const { rows, decimal } = table;
  const fields = rows.map((row) => (isMissing(row[column]) ? null : row[column]));
  if (fields.every((field) => field === null || isNumber(field, decimal))) {
    return fields.map((field) => (field === null ? null : numberIn(pointed(field, decimal))));
  }
  const commas = decimal === ',' && mostlyNumbers(table, column);
  return fields.map((field) => (field === null ? null : stripped(commas ? field.replace(',', '.') : field)));
}

function numberIn(field) {
  if (/inf/i.test(field)) return field.includes('-') ? -Infinity : Infinity;
  return Number(field);
}

export class TableEncoder {
  constructor(model, arrays) {
    this.width = model.nFeatures;
    let from = 0;
    this.columns = model.table.columns.map(({ name, kind, weight, mark, encoder }) => {
      const column = { name, from, mark, factor: Math.sqrt(weight), ...encoderOf(kind, encoder) };
      from += column.width;
      return column;
    });
    this.encoded = from; // marks of gaps come after
    this.filler = new GapFiller(arrays['table.mean'], arrays['table.axes']);
  }

  // The rows of a table from its columns at `places`: a function of the first and the last of them.
  rowsOf(table, places) {
    const values = places.map((place) => typedColumn(table, place));
    return (from, to) => {
      const rows = new Float64Array((to - from) * this.width);
      for (let row = from; row < to; row++) this.encode(table, row, values, places, rows.subarray((row - from) * this.width));
      return rows;
    };
  }

  encode(table, row, values, places, into) {
    const part = into.subarray(0, this.encoded);
    let mark = this.encoded;
    this.columns.forEach((column, i) => {
      const value = values[i][row];
      if (value === null) part.fill(NaN, column.from, column.from + column.width);
      else {
        const wrong = column.encode(value, (place, number) => (part[column.from + place] = column.factor * number));
        if (wrong) refuse(table, row, places[i], wrong);
      }
      if (column.mark > 0) into[mark++] = value === null ? column.mark : 0;
    });
    this.filler.fill(part);
    for (let i = 0; i < this.width; i++) into[i] = Math.fround(into[i]); // as Python rounds them
  }
}

function refuse(table, row, column, wrong) {
  const where = `${quoted(table.source)}, row ${row} (line ${table.lines[row]}), column ${quoted(table.names[column])}`;
  const advice = wrong.includes(':') ? '.' : ': correct it, or leave it empty.';
  throw new BadData(`${where}: ${quoted(table.rows[row][column].slice(0, 40))} ${wrong}${advice}`);
}
