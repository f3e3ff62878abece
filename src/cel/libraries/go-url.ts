/** Parses absolute URLs and absolute paths as Go's `net/url` does, with its messages. */
import { goQuote } from "../../schema/value/go-quote.ts";

export interface GoUrl {
  readonly scheme: string;
  /** `user:password`, still escaped; empty when absent. */
  readonly user: string;
  readonly host: string;
  /** Still escaped. */
  readonly path: string;
  readonly query: string;
  readonly fragment: string;
}

/** The error of a text as a request URI; undefined when it is valid. */
export function checkRequestUri(text: string): string | undefined {
  const parsed = parse(text, true);
  return typeof parsed === "string" ? `parse ${goQuote(text)}: ${parsed}` : undefined;
}

/** Requires text that `checkRequestUri` accepts. */
export function parseUrl(text: string): GoUrl {
  const hash = text.indexOf("#");
  const parsed = parse(hash < 0 ? text : text.slice(0, hash), true);
  if (typeof parsed === "string") return { scheme: "", user: "", host: "", path: text, query: "", fragment: "" };
  return { ...parsed, fragment: hash < 0 ? "" : text.slice(hash + 1) };
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: Go rejects control characters
const control = /[\0-\x1f\x7f]/;

function parse(text: string, request: boolean): GoUrl | string {
  if (control.test(text)) return "net/url: invalid control character in URL";
  if (text === "") return "empty url";
  const empty = { scheme: "", user: "", host: "", path: text, query: "", fragment: "" };
  if (text === "*") return empty;
  const scheme = schemeOf(text);
  if (scheme === undefined) return "missing protocol scheme";
  const afterScheme = scheme === "" ? text : text.slice(scheme.length + 1);
  const mark = afterScheme.indexOf("?");
  const query = mark < 0 ? "" : afterScheme.slice(mark + 1);
  const rest = mark < 0 ? afterScheme : afterScheme.slice(0, mark);
  const url = { ...empty, scheme: scheme.toLowerCase(), path: rest, query };
  if (!rest.startsWith("/")) {
    // An opaque URL such as `mailto:user` has no path.
    if (scheme !== "") return { ...url, path: "" };
    return request ? "invalid URI for request" : url;
  }
  if (scheme === "" || !rest.startsWith("//")) return checkEscapes(rest) ?? url;
  const slash = rest.indexOf("/", 2);
  const authority = slash < 0 ? rest.slice(2) : rest.slice(2, slash);
  const path = slash < 0 ? "" : rest.slice(slash);
  return parseAuthority(url, authority, path);
}

/** Empty when absent, undefined when the text begins with a colon. */
function schemeOf(text: string): string | undefined {
  if (text.startsWith(":")) return undefined;
  return /^([A-Za-z][A-Za-z0-9+.-]*):/.exec(text)?.[1] ?? "";
}

function parseAuthority(url: GoUrl, authority: string, path: string): GoUrl | string {
  const at = authority.lastIndexOf("@");
  const user = at < 0 ? "" : authority.slice(0, at);
  if (!/^[A-Za-z0-9\-._:~!$&'()*+,;=%@]*$/.test(user)) return "net/url: invalid userinfo";
  const host = authority.slice(at + 1);
  return checkHost(host) ?? checkEscapes(path) ?? { ...url, user, host, path };
}

function checkHost(host: string): string | undefined {
  if (host.startsWith("[")) {
    const close = host.lastIndexOf("]");
    if (close < 0) return "missing ']' in host";
    return checkPort(host.slice(close + 1)) ?? checkHostCharacters(host.slice(0, close + 1));
  }
  const colon = host.lastIndexOf(":");
  return (colon < 0 ? undefined : checkPort(host.slice(colon))) ?? checkHostCharacters(host);
}

function checkPort(port: string): string | undefined {
  return /^(?::\d*)?$/.test(port) ? undefined : `invalid port ${goQuote(port)} after host`;
}

function checkHostCharacters(host: string): string | undefined {
  const letter = /[^A-Za-z0-9\-_.~!$&'()*+,;=:[\]<>"%\u0080-\u{10ffff}]/u.exec(host)?.[0];
  if (letter !== undefined) return `invalid character ${goQuote(letter)} in host name`;
  return checkEscapes(host);
}

function checkEscapes(text: string): string | undefined {
  const broken = /%(?![0-9A-Fa-f]{2}).{0,2}/s.exec(text)?.[0];
  return broken === undefined ? undefined : `invalid URL escape ${goQuote(broken)}`;
}

/** Without the brackets of IPv6 and without the port. */
export function hostname({ host }: GoUrl): string {
  const plain = host.replace(/:\d*$/, "");
  return plain.startsWith("[") && plain.endsWith("]") ? plain.slice(1, -1) : plain;
}

export function port({ host }: GoUrl): string {
  return /:(\d*)$/.exec(host)?.[1] ?? "";
}

/** The escaped path; keeps existing escapes. */
export function escapedPath({ path }: GoUrl): string {
  if (/^[A-Za-z0-9\-_.~!$&'()*+,;=:@[\]/%]*$/.test(path)) return path;
  const plain = unescapePercent(path, false) ?? path;
  return Buffer.from(plain)
    .toString("latin1")
    .replaceAll(/[^A-Za-z0-9\-_.~$&+,/:;=@]/g, (byte) => {
      return `%${byte.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`;
    });
}

/** Query parameters with their values in order; skips invalid ones. */
export function queryOf({ query }: GoUrl): ReadonlyMap<string, readonly string[]> {
  const values = new Map<string, string[]>();
  for (const pair of query.split("&")) {
    if (pair === "" || pair.includes(";")) continue;
    const equals = pair.indexOf("=");
    const key = unescapePercent(equals < 0 ? pair : pair.slice(0, equals), true);
    const value = unescapePercent(equals < 0 ? "" : pair.slice(equals + 1), true);
    if (key === undefined || value === undefined) continue;
    const known = values.get(key);
    if (known === undefined) values.set(key, [value]);
    else known.push(value);
  }
  return values;
}

function unescapePercent(text: string, plusIsSpace: boolean): string | undefined {
  const spaced = plusIsSpace ? text.replaceAll("+", " ") : text;
  if (!spaced.includes("%")) return spaced;
  if (checkEscapes(spaced) !== undefined) return undefined;
  const bytes = Buffer.from(spaced)
    .toString("latin1")
    .replaceAll(/%([0-9A-Fa-f]{2})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)));
  return Buffer.from(bytes, "latin1").toString("utf8");
}
