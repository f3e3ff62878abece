import type { UserInfo } from "../../user.ts";

export interface TokenRow {
  readonly token: string;
  readonly user: UserInfo;
}

/** The rows of a `--token-auth-file`: `token,user,uid[,"group1,group2"]`. Throws with file and line. */
export function parseTokenFile(path: string, text: string): readonly TokenRow[] {
  const rows: TokenRow[] = [];
  const seen = new Map<string, number>();
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    if (line.trim() === "") continue;
    const where = `${path}:${index + 1}`;
    const [token = "", name = "", uid, groups = ""] = parseRow(where, line).map((field) => field.trim());
    if (uid === undefined) {
      throw new Error(`Cannot read ${where}: expected token,user,uid and perhaps "group1,group2", found fewer columns`);
    }
    if (token === "") throw new Error(`Cannot read ${where}: the token is empty`);
    if (name === "") throw new Error(`Cannot read ${where}: the user is empty`);
    const first = seen.get(token);
    if (first !== undefined) throw new Error(`Cannot read ${where}: the token is that of line ${first}`);
    seen.set(token, index + 1);
    const list = groups.split(",").map((group) => group.trim());
    rows.push({ token, user: { name, uid, groups: list.filter((group) => group !== ""), extra: {} } });
  }
  return rows;
}

/** One line of comma-separated values; quotes are doubled inside quotes. */
function parseRow(where: string, line: string): string[] {
  const fields: string[] = [];
  let at = 0;
  for (;;) {
    const match = /^\s*(?:"((?:[^"]|"")*)"|([^",]*))\s*(,|$)/.exec(line.slice(at));
    if (match === null) throw new Error(`Cannot read ${where}: a quote is not closed or stands inside a value`);
    fields.push(match[1]?.replaceAll('""', '"') ?? match[2] ?? "");
    at += match[0].length;
    if (match[3] === "") return fields;
  }
}
