/** The opaque token with which a client requests the next page of a list. */
import { badRequest } from "../../api/status.ts";
import { parseJson } from "../../schema/json/parse.ts";
import type { Revision } from "../../storage/store.ts";

export interface ContinueToken {
  /** Every page shows this revision; undefined for a token whose revision expired: the page shows the current state. */
  readonly revision: Revision | undefined;
  /** Key of the last object on the previous page, without the resource's prefix. */
  readonly after: string;
}

const VERSION = "meta.k8s.io/v1";
/** The `rv` of a token for the current state. */
const ANY_REVISION = -1;

export function encodeContinue({ revision, after }: ContinueToken): string {
  return Buffer.from(JSON.stringify({ v: VERSION, rv: revision ?? ANY_REVISION, start: `${after}\0` })).toString(
    "base64url",
  );
}

export function decodeContinue(token: string): ContinueToken {
  let value: { readonly v?: unknown; readonly rv?: unknown; readonly start?: unknown };
  try {
    value = parseJson(decodeBase64(token)).value as typeof value;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw invalidToken(`continue key is not valid: ${error.message.replace(/ \(line \d+, column \d+\)$/, "")}`);
  }
  const { v, rv, start } = value ?? {};
  if (v !== VERSION)
    throw invalidToken(
      `continue key is not valid: server does not recognize this encoded version ${JSON.stringify(v)}`,
    );
  if (typeof rv !== "number" || !Number.isSafeInteger(rv) || rv === 0) {
    throw invalidToken(`continue key is not valid: incorrect encoded start resourceVersion (version ${VERSION})`);
  }
  if (typeof start !== "string" || start === "") {
    throw invalidToken(`continue key is not valid: encoded start key empty (version ${VERSION})`);
  }
  // Rejects keys outside the range of the resource, which would list other resources.
  if (start.startsWith("/") || start.split("/").some((part) => part === ".." || part === ".")) {
    throw invalidToken(`continue key is not valid: ${start}`);
  }
  return { revision: rv < 0 ? undefined : (rv as Revision), after: start.replace(/\0$/, "") };
}

/** Throws a `SyntaxError` with the message of Go's base64 decoder. */
function decodeBase64(token: string): Buffer {
  const invalid = token.search(/[^\w-]/);
  const index = invalid === -1 && token.length % 4 === 1 ? token.length - 1 : invalid;
  if (index !== -1) throw new SyntaxError(`illegal base64 data at input byte ${index}`);
  return Buffer.from(token, "base64url");
}

function invalidToken(why: string) {
  return badRequest(`invalid continue token: ${why}`);
}
