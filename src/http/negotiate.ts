import { createTextRecord } from "../std/collections/text-record.ts";

export interface MediaType {
  /** `application/json` */
  readonly type: string;
  readonly params: Readonly<Record<string, string>>;
}

export interface Offer {
  /** `application/json` */
  readonly mediaType: string;
}

/** More clauses than real clients send; the rest is ignored. */
const CLAUSES_MAX = 64;

const TOKEN = /^[!#$%&'*+\-.^_`|~\w]+$/;
const PARAMETER = /\s*;\s*([!#$%&'*+\-.^_`|~\w]+)\s*=\s*(?:([!#$%&'*+\-.^_`|~\w]+)|"((?:\\.|[^"\\\r\n])*)")/y;

/**
 * A `Content-Type`, in lower case but for values of parameters; undefined when it is malformed. As in Go: a parameter
 * has a value and stands once, and one semicolon may end the header.
 */
export function parseMediaType(header: string): MediaType | undefined {
  const end = header.indexOf(";");
  const type = (end === -1 ? header : header.slice(0, end)).trim().toLowerCase();
  const [major, minor, ...more] = type.split("/");
  if (major === undefined || minor === undefined || more.length > 0) return undefined;
  if (!TOKEN.test(major) || !TOKEN.test(minor)) return undefined;
  const params = createTextRecord();
  let rest = end === -1 ? header.length : end;
  for (;;) {
    PARAMETER.lastIndex = rest;
    const match = PARAMETER.exec(header);
    if (match === null) break;
    const name = match[1]!.toLowerCase();
    if (Object.hasOwn(params, name)) return undefined;
    params[name] = match[2] ?? match[3]!.replace(/\\(.)/g, "$1");
    rest = PARAMETER.lastIndex;
  }
  return ["", ";"].includes(header.slice(rest).trim()) ? { type, params } : undefined;
}

interface Clause {
  readonly media: MediaType;
  readonly q: number;
}

/**
 * The clauses of an `Accept` header, highest weight first; without malformed ones. As Kubernetes' parser: it knows no
 * quotes, its names and types are case-sensitive, a parameter without a value is as if it were absent, and a clause of
 * `q=0`, or of a weight that is no number, is the last choice instead of none.
 */
export function parseAccept(header: string): readonly MediaType[] {
  const clauses: Clause[] = [];
  for (const part of header.split(",", CLAUSES_MAX)) {
    const [range = "", ...parameters] = part.split(";");
    const type = acceptedType(range);
    if (type === undefined) continue;
    const params = createTextRecord();
    let q = 1;
    for (const parameter of parameters) {
      const [name = "", value = "", ...more] = parameter.split("=");
      if (value === "" || more.length > 0) continue;
      if (trimBlanks(name) === "q") q = Number(value) || 0;
      else params[trimBlanks(name)] = trimBlanks(value);
    }
    insert(clauses, { media: { type, params }, q });
  }
  return clauses.map((clause) => clause.media);
}

/** Java's client sends `*` for any type. */
function acceptedType(range: string): string | undefined {
  const [major = "", minor = "", ...more] = range.split("/").map(trimBlanks);
  if (major === "*" && minor === "") return "*/*";
  return minor === "" || more.some((part) => part !== "") ? undefined : `${major}/${minor}`;
}

function trimBlanks(text: string): string {
  return text.replace(/^ +| +$/g, "");
}

/**
 * Behind the clauses that it does not precede. By Kubernetes' comparison, which is no order: a specific type precedes a
 * wildcard in front of it whatever their weights. The client's order decides among equals.
 */
function insert(clauses: Clause[], clause: Clause): void {
  let index = clauses.length;
  while (index > 0 && precedes(clause, clauses[index - 1]!)) index--;
  clauses.splice(index, 0, clause);
}

function precedes(a: Clause, b: Clause): boolean {
  if (a.q > b.q) return true;
  return wildcardRank(a.media.type) < wildcardRank(b.media.type);
}

/**
 * Chooses the media type of a response: the first clause of `accept` that an offer satisfies, offers in their order. No
 * header, or an empty one, takes the first offer. `accepts` checks the clause's parameters, such as
 * `as=Table;v=v1;g=meta.k8s.io`; without it they are ignored. Undefined: nothing acceptable (406).
 */
export function negotiate<O extends Offer>(
  accept: string | undefined,
  offers: readonly O[],
  accepts: (offer: O, params: Readonly<Record<string, string>>) => boolean = () => true,
): { readonly offer: O; readonly params: Readonly<Record<string, string>> } | undefined {
  if (accept === undefined || accept === "") {
    const offer = offers.find((candidate) => accepts(candidate, {}));
    return offer === undefined ? undefined : { offer, params: {} };
  }
  for (const clause of parseAccept(accept)) {
    const offer = offers.find(
      (candidate) => matchesMediaType(clause.type, candidate.mediaType) && accepts(candidate, clause.params),
    );
    if (offer !== undefined) return { offer, params: clause.params };
  }
  return undefined;
}

/**
 * Whether one of the clauses of `accept` is exactly an offered media type, or the wildcard. Parameters are ignored. No
 * header, or an empty one, accepts anything.
 */
export function acceptsExactly(accept: string | undefined, offers: readonly Offer[]): boolean {
  if (accept === undefined || accept === "") return true;
  return accept.split(",", CLAUSES_MAX).some((clause) => {
    const [type = ""] = clause.split(";", 1);
    const mediaRange = trimBlanks(type);
    return mediaRange === "*/*" || offers.some(({ mediaType }) => mediaType === mediaRange);
  });
}

function matchesMediaType(mediaRange: string, offered: string): boolean {
  if (mediaRange === offered || mediaRange === "*/*") return true;
  return mediaRange.endsWith("/*") && offered.startsWith(mediaRange.slice(0, -1));
}

function wildcardRank(type: string): number {
  if (type === "*/*") return 2;
  return type.endsWith("/*") ? 1 : 0;
}
