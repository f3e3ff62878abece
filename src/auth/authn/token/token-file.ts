import type { UserInfo } from "../../user.ts";

export interface TokenRow {
  readonly token: string;
  readonly user: UserInfo;
}

/** Parses a `--token-auth-file`: `token,user,uid[,"group1,group2"]`. Throws with file and line. */
export function parseTokenFile(path: string, text: string): readonly TokenRow[] {
  const rows: TokenRow[] = [];
  const seen = new Map<string, number>();
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    if (line.trim() === "") continue;
    const location = `${path}:${index + 1}`;
    const [token = "", name = "", uid, groups = ""] = parseRow(location, line).map((field) => field.trim());
    if (uid === undefined) {
      throw new Error(
        `Cannot read ${location}: expected token,user,uid and optionally "group1,group2", found fewer columns`,
      );
    }
    if (token === "") throw new Error(`Cannot read ${location}: the token is empty`);
    if (name === "") throw new Error(`Cannot read ${location}: the user is empty`);
    const first = seen.get(token);
    if (first !== undefined) throw new Error(`Cannot read ${location}: duplicate of the token in line ${first}`);
    seen.set(token, index + 1);
    const list = groups.split(",").map((group) => group.trim());
    rows.push({ token, user: { name, uid, groups: list.filter((group) => group !== ""), extra: {} } });
  }
  return rows;
}

/** Parses one line of comma-separated values; a quote inside quotes is doubled. */
function parseRow(location: string, line: string): string[] {
  const fields: string[] = [];
  let offset = 0;
  for (;;) {
    const match = /^\s*(?:"((?:[^"]|"")*)"|([^",]*))\s*(,|$)/.exec(line.slice(offset));
    if (match === null) throw new Error(`Cannot read ${location}: a quote is not closed or stands inside a value`);
    fields.push(match[1]?.replaceAll('""', '"') ?? match[2] ?? "");
    offset += match[0].length;
    if (match[3] === "") return fields;
  }
}
