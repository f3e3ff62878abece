/** Writes YAML in block style as Go's library does, whose text kubectl and the API server of Kubernetes send. */
import { writeNumber, writeScalar } from "./write-scalar.ts";

/** Lines are folded beyond it. */
const WIDTH = 80;
/** A longer key stands behind a question mark. */
const KEY_BYTES_MAX = 128;

/** Members are sorted; members that are undefined are left out. All lines have the indentation. */
export function encodeYaml(value: unknown, { indent = 0, width = WIDTH }: Layout = {}): string {
  const parts: string[] = [" ".repeat(indent)];
  writeNode(parts, value, { indent, column: indent, width });
  return `${parts.join("")}\n`;
}

interface Layout {
  readonly indent?: number;
  readonly width?: number;
}

interface Place {
  /** Of the members or items. */
  readonly indent: number;
  readonly column: number;
  readonly width: number;
}

type Members = Readonly<Record<string, unknown>>;

function writeNode(parts: string[], value: unknown, place: Place): void {
  if (Array.isArray(value)) writeItems(parts, value, place);
  else if (typeof value === "object" && value !== null) writeMembers(parts, value as Members, place);
  else parts.push(scalar(value, place));
}

function scalar(value: unknown, { indent, column, width }: Place): string {
  if (typeof value === "string") return writeScalar(value, { column, indent: indent + 2, width, isKey: false });
  if (typeof value === "number" || typeof value === "bigint") return writeNumber(value);
  return typeof value === "boolean" ? String(value) : "null";
}

/** The first line starts at the place, the others at the indentation. */
function writeMembers(parts: string[], members: Members, { indent, width }: Place): void {
  const names = Object.keys(members).filter((name) => members[name] !== undefined);
  if (names.length === 0) parts.push("{}");
  const pad = `\n${" ".repeat(indent)}`;
  for (const [i, name] of names.sort(compareKeys).entries()) {
    if (i > 0) parts.push(pad);
    const isSimple = Buffer.byteLength(name) <= KEY_BYTES_MAX && !/[\n\r\x85\u2028\u2029]/.test(name);
    const column = isSimple ? indent : indent + 2;
    const key = writeScalar(name, { column, indent: indent + 2, width, isKey: isSimple });
    if (isSimple) {
      parts.push(key, ":");
      writeMember(parts, members[name], { indent, column: indent + key.length + 2, width });
    } else {
      parts.push("? ", key, pad, ": ");
      const below = isFilled(members[name]) ? indent + 2 : indent;
      writeNode(parts, members[name], { indent: below, column: indent + 2, width });
    }
  }
}

/** The value behind its key. */
function writeMember(parts: string[], value: unknown, { indent, column, width }: Place): void {
  if (!isFilled(value)) {
    parts.push(" ");
    writeNode(parts, value, { indent, column, width });
    return;
  }
  // Items have the indentation of their key.
  const below = Array.isArray(value) ? indent : indent + 2;
  parts.push(`\n${" ".repeat(below)}`);
  writeNode(parts, value, { indent: below, column: below, width });
}

function writeItems(parts: string[], items: readonly unknown[], { indent, width }: Place): void {
  if (items.length === 0) parts.push("[]");
  for (const [i, item] of items.entries()) {
    if (i > 0) parts.push(`\n${" ".repeat(indent)}`);
    parts.push("- ");
    const below = isFilled(item) ? indent + 2 : indent;
    writeNode(parts, item, { indent: below, column: indent + 2, width });
  }
}

function isFilled(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.values(value).some((member) => member !== undefined);
}

/** Letters after other characters, and numbers in names by their value: `f9` precedes `f10`. */
export function compareKeys(a: string, b: string): number {
  let start = 0;
  while (start < a.length && a[start] === b[start]) start++;
  const [first, other] = [a.charCodeAt(start), b.charCodeAt(start)];
  if (isAsciiLetter(first) && isAsciiLetter(other)) return first - other;
  return compareCharacters([...a], [...b]);
}

function isAsciiLetter(code: number): boolean {
  return (code >= 0x61 && code <= 0x7a) || (code >= 0x41 && code <= 0x5a);
}

function compareCharacters(ar: readonly string[], br: readonly string[]): number {
  const at = ar.findIndex((character, i) => character !== br[i]);
  const [x, y] = [ar[at], br[at]];
  if (x === undefined || y === undefined) return ar.length - br.length;
  const [isLetter, isOtherLetter] = [x, y].map((character) => /\p{L}/u.test(character));
  if (isLetter !== isOtherLetter) return isOtherLetter === true ? -1 : 1;
  if (isLetter !== true) {
    // Within a number, zeros count.
    const before = (x === "0" || y === "0") && /[1-9]\d*$/.test(ar.slice(0, at).join("")) ? "1" : "";
    const [m = "", n = ""] = [ar, br].map((characters) => /^\d*/.exec(characters.slice(at).join(""))![0]);
    const difference = BigInt(before + m || "0") - BigInt(before + n || "0");
    if (difference !== 0n) return difference < 0n ? -1 : 1;
    if (m.length !== n.length) return m.length - n.length;
  }
  return x.codePointAt(0)! - y.codePointAt(0)!;
}
