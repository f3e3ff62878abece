/** The opaque token with which a client asks for the next page of a list. */
import { badRequest } from "../api/status.ts";
import type { Revision } from "../storage/store.ts";

export interface Continue {
  /** Every page shows the cluster as of this revision. */
  readonly revision: Revision;
  /** Key of the last object of the page before, without the resource's prefix. */
  readonly after: string;
}

const VERSION = "meta.k8s.io/v1";

export function encodeContinue({ revision, after }: Continue): string {
  return Buffer.from(JSON.stringify({ v: VERSION, rv: revision, start: `${after}\0` })).toString("base64url");
}

export function decodeContinue(token: string): Continue {
  let value: { readonly v?: unknown; readonly rv?: unknown; readonly start?: unknown };
  try {
    value = JSON.parse(Buffer.from(token, "base64url").toString()) as typeof value;
  } catch {
    throw invalidToken("continue key is not valid: it cannot be decoded");
  }
  const { v, rv, start } = value ?? {};
  if (v !== VERSION)
    throw invalidToken(
      `continue key is not valid: server does not recognize this encoded version ${JSON.stringify(v)}`,
    );
  if (typeof rv !== "number" || !Number.isSafeInteger(rv) || rv <= 0) {
    throw invalidToken(`continue key is not valid: incorrect encoded start resourceVersion (version ${VERSION})`);
  }
  if (typeof start !== "string" || start === "") {
    throw invalidToken(`continue key is not valid: encoded start key empty (version ${VERSION})`);
  }
  // A key that climbs out of the resource's own range would show other resources.
  if (start.startsWith("/") || start.split("/").some((part) => part === ".." || part === ".")) {
    throw invalidToken(`continue key is not valid: ${start}`);
  }
  return { revision: rv as Revision, after: start.replace(/\0$/, "") };
}

function invalidToken(why: string) {
  return badRequest(`invalid continue token: ${why}`);
}
