import { ValueError } from "../flag.ts";

/** The fields of one CSV line: commas separate, double quotes keep commas. "" has no fields. */
export function splitCsv(line: string): string[] {
  if (line === "") return [];
  const fields: string[] = [];
  let at = 0;
  for (;;) {
    if (line[at] === '"') {
      const match = /^"((?:[^"]|"")*)"(?=,|$)/.exec(line.slice(at));
      if (match === null) throw new ValueError("a double quote is not closed");
      fields.push(match[1]!.replaceAll('""', '"'));
      at += match[0].length;
    } else {
      const end = line.indexOf(",", at);
      fields.push(line.slice(at, end < 0 ? undefined : end));
      at = end < 0 ? line.length : end;
    }
    if (at >= line.length) return fields;
    at += 1;
  }
}
