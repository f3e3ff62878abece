/** Keys of objects in the store: `/registry/pods/default/web`, `/registry/nodes/n1`. */
import type { Kind } from "../api/kind.ts";
import { badRequest } from "../api/status.ts";

/** The prefix of all keys: `/registry/` for `registry`, `/registry` and `/registry/`. */
export function normalizePrefix(prefix: string): string {
  return ["", ...prefix.split("/").filter((segment) => segment !== ""), ""].join("/");
}

export class KeySpace {
  readonly #root: string;
  readonly #namespaced: boolean;

  /** `prefix` is the value of `--kvstore-prefix`. */
  constructor(prefix: string, kind: Pick<Kind, "storageName" | "namespaced">) {
    this.#root = `${normalizePrefix(prefix)}${kind.storageName}/`;
    this.#namespaced = kind.namespaced;
  }

  /** Throws a 400 for a namespace or name that is not a path segment. */
  key(namespace: string | undefined, name: string): string {
    if (name === "") throw badRequest("Name parameter required.");
    checkSegment("Name", name);
    return this.prefix(this.#namespaced ? requireNamespace(namespace) : undefined) + name;
  }

  prefix(namespace?: string): string {
    if (namespace === undefined || namespace === "" || !this.#namespaced) return this.#root;
    checkSegment("Namespace", namespace);
    return `${this.#root}${namespace}/`;
  }

  nameOf(key: string): string {
    return key.slice(key.lastIndexOf("/") + 1);
  }
}

function requireNamespace(namespace: string | undefined): string {
  if (namespace === undefined || namespace === "") throw badRequest("Namespace parameter required.");
  return namespace;
}

function checkSegment(what: string, segment: string): void {
  const reasons: string[] = [];
  if (segment === "." || segment === "..") reasons.push(`may not be '${segment}'`);
  for (const character of ["/", "%"]) if (segment.includes(character)) reasons.push(`may not contain '${character}'`);
  // NUL separates key and revision in the keys of the embedded store.
  if (segment.includes("\0")) reasons.push("may not contain NUL");
  if (reasons.length > 0)
    throw badRequest(`${what} parameter invalid: ${JSON.stringify(segment)}: ${reasons.join(";")}`);
}
