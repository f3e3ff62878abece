/** The opaque token with which a client requests the next page of a list. */
import { badRequest } from "../../api/status.ts";
import { parseJson } from "../../schema/json/parse.ts";
import { isPlainObject } from "../../schema/value/plain-object.ts";
import type { Revision } from "../../storage/store.ts";

export interface ContinueToken {
  /** Every page shows this revision; undefined for a token whose revision expired: the page shows the current state. */
  readonly revision: Revision | undefined;
  /** The first key that the page can have, without the resource's prefix. */
  readonly start: string;
}

/** The start of the page after that with this last key. */
export function startAfter(key: string): string {
  return `${key}\0`;
}

const VERSION = "meta.k8s.io/v1";
/** The `rv` of a token for the current state. */
const ANY_REVISION = -1;

export function encodeContinue({ revision, start }: ContinueToken): string {
  return Buffer.from(JSON.stringify({ v: VERSION, rv: revision ?? ANY_REVISION, start })).toString("base64url");
}

export function decodeContinue(token: string): ContinueToken {
  let sent: SentToken;
  try {
    sent = readToken(parseJson(decodeBase64(token)).value);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw invalidToken(`: ${error.message.replace(/ \(line \d+, column \d+\)$/, "")}`);
  }
  const { v, rv, start } = sent;
  if (v !== VERSION) throw invalidToken(`: server does not recognize this encoded version ${v}`);
  if (rv === 0) throw invalidToken(`: incorrect encoded start resourceVersion (version ${VERSION})`);
  if (start === "") throw invalidToken(`: encoded start key empty (version ${VERSION})`);
  // Rejects keys outside the range of the resource, which would list other resources.
  const key = start.startsWith("/") ? start : `/${start}`;
  if (key !== "/" && key.split("/").some((part, i) => i > 0 && (part === "" || part === ".." || part === "."))) {
    throw invalidToken(`: ${start}`);
  }
  return { revision: rv < 0 ? undefined : (rv as Revision), start: key.slice(1) };
}

interface SentToken {
  readonly v: string;
  readonly rv: number;
  readonly start: string;
}

/** Throws a `SyntaxError` with the messages of Go's JSON decoder, which ignores the case of names. */
function readToken(value: unknown): SentToken {
  const token = { v: "", rv: 0, start: "" };
  if (value === null) return token;
  if (!isPlainObject(value)) throw new SyntaxError(`${mismatch(value)} value of type storage.continueToken`);
  for (const [name, member] of Object.entries(value)) {
    const field = name.toLowerCase();
    if (member === null || (field !== "v" && field !== "rv" && field !== "start")) continue;
    const wanted = field === "rv" ? "int64" : "string";
    if (typeof member !== (field === "rv" ? "number" : "string") || (field === "rv" && !Number.isInteger(member))) {
      throw new SyntaxError(`${mismatch(member)} struct field continueToken.${field} of type ${wanted}`);
    }
    Object.assign(token, { [field]: member });
  }
  return token;
}

function mismatch(value: unknown): string {
  if (Array.isArray(value)) return "json: cannot unmarshal array into Go";
  const type = typeof value === "boolean" ? "bool" : typeof value;
  const isFraction = type === "number" && !Number.isInteger(value);
  return `json: cannot unmarshal ${isFraction ? `number ${String(value)}` : type} into Go`;
}

/** Throws a `SyntaxError` with the message of Go's base64 decoder. */
function decodeBase64(token: string): Buffer {
  const invalid = token.search(/[^\w\r\n-]/);
  const index = invalid === -1 && token.length % 4 === 1 ? token.length - 1 : invalid;
  if (index !== -1) throw new SyntaxError(`illegal base64 data at input byte ${index}`);
  return Buffer.from(token, "base64url");
}

function invalidToken(why: string) {
  return badRequest(`invalid continue token: continue key is not valid${why}`);
}
