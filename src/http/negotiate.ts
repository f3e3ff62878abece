import { createTextRecord } from "../std/collections/text-record.ts";

export interface MediaType {
  /** `application/json`, lower case. */
  readonly type: string;
  /** Names in lower case. */
  readonly params: Readonly<Record<string, string>>;
}

export interface Offer {
  /** `application/json` */
  readonly mediaType: string;
}

/** More clauses than real clients send; the rest is ignored. */
const CLAUSES_MAX = 64;

const TOKEN = /^[!#$%&'*+\-.^_`|~\w]+$/;

/** A `Content-Type`; undefined when it is malformed. */
export function parseMediaType(header: string): MediaType | undefined {
  const [first = "", ...rest] = splitOutsideQuotes(header, ";");
  const type = first.trim().toLowerCase();
  const [major, minor, ...more] = type.split("/");
  if (major === undefined || minor === undefined || more.length > 0) return undefined;
  if (!TOKEN.test(major) || !TOKEN.test(minor)) return undefined;
  const params = createTextRecord();
  for (const part of rest) {
    const equals = part.indexOf("=");
    const name = (equals === -1 ? part : part.slice(0, equals)).trim().toLowerCase();
    if (name === "") continue;
    if (!TOKEN.test(name)) return undefined;
    params[name] = equals === -1 ? "" : unquote(part.slice(equals + 1).trim());
  }
  return { type, params };
}

interface Clause {
  readonly media: MediaType;
  readonly q: number;
}

/**
 * The clauses of an `Accept` header, highest weight first; without malformed ones. As in Kubernetes a clause of `q=0`,
 * or of a weight that is no number, is the last choice instead of none.
 */
export function parseAccept(header: string): readonly MediaType[] {
  const clauses: Clause[] = [];
  for (const part of splitOutsideQuotes(header, ",", CLAUSES_MAX)) {
    // Java's client sends `*; q=.2` for any type.
    const media = parseMediaType(part.replace(/^\s*\*\s*(?=;|$)/, "*/*"));
    if (media === undefined) continue;
    const { q, ...params } = media.params;
    insert(clauses, { media: { type: media.type, params }, q: q === undefined ? 1 : Number(q) || 0 });
  }
  return clauses.map((clause) => clause.media);
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
 * `as=Table;v=v1;g=meta.k8s.io`; without it a clause with such a parameter never matches. Undefined: nothing
 * acceptable (406).
 */
export function negotiate<O extends Offer>(
  accept: string | undefined,
  offers: readonly O[],
  accepts: (offer: O, params: Readonly<Record<string, string>>) => boolean = (_, params) => !requestsTransform(params),
): { readonly offer: O; readonly params: Readonly<Record<string, string>> } | undefined {
  if (accept === undefined || accept.trim() === "") {
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

/** Whether a clause requests another kind than the resource's own, as in Kubernetes also without `as`. */
export function requestsTransform({ as, g, v }: Readonly<Record<string, string>>): boolean {
  return as !== undefined || g !== undefined || v !== undefined;
}

/**
 * Whether one of the clauses of `accept` is exactly an offered media type, or the wildcard. Parameters are ignored. No
 * header, or an empty one, accepts anything.
 */
export function acceptsExactly(accept: string | undefined, offers: readonly Offer[]): boolean {
  if (accept === undefined || accept === "") return true;
  return accept.split(",", CLAUSES_MAX).some((clause) => {
    const [type = ""] = clause.split(";", 1);
    const mediaRange = type.replace(/^ +| +$/g, "");
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

function unquote(value: string): string {
  if (value.length < 2 || !value.startsWith('"') || !value.endsWith('"')) return value;
  return value.slice(1, -1).replace(/\\(.)/g, "$1");
}

function splitOutsideQuotes(header: string, separator: string, partsMax = Number.POSITIVE_INFINITY): string[] {
  if (!header.includes('"')) return header.split(separator, Math.min(partsMax, 2 ** 32 - 1));
  const parts: string[] = [];
  let quoted = false;
  let start = 0;
  for (let index = 0; index < header.length && parts.length < partsMax; index++) {
    const character = header[index];
    if (quoted && character === "\\") index++;
    else if (character === '"') quoted = !quoted;
    else if (!quoted && character === separator) {
      parts.push(header.slice(start, index));
      start = index + 1;
    }
  }
  if (parts.length < partsMax) parts.push(header.slice(start));
  return parts;
}
