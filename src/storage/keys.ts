/** Keys of objects in the store: `/registry/pods/default/web`, `/registry/nodes/n1`. */
import type { Kind } from "../api/kind.ts";
import { pathSegment } from "../api/meta/validation/names.ts";
import { badRequest, StatusError } from "../api/status.ts";
import { goQuote } from "../schema/value/go-quote.ts";

/** The prefix of all keys: `/registry/` for `registry`, `/registry` and `/registry/`. */
export function normalizePrefix(prefix: string): string {
  return ["", ...prefix.split("/").filter((segment) => segment !== ""), ""].join("/");
}

export class KeySpace {
  readonly #root: string;
  readonly #storageName: string;
  readonly #namespaced: boolean;

  /** `prefix` is the value of `--kvstore-prefix`. */
  constructor(prefix: string, kind: Pick<Kind, "storageName" | "namespaced">) {
    this.#root = `${normalizePrefix(prefix)}${kind.storageName}/`;
    this.#storageName = kind.storageName;
    this.#namespaced = kind.namespaced;
  }

  /** Throws a 400 for a name that is not a path segment, and a 500 for such a namespace. */
  key(namespace: string | undefined, name: string): string {
    if (name === "") throw badRequest("Name parameter required.");
    checkName(name);
    if (!this.#namespaced) return this.#root + name;
    this.#checkNamespace(requireNamespace(namespace), `/${name}`);
    return `${this.#root}${namespace}/${name}`;
  }

  prefix(namespace?: string): string {
    if (namespace === undefined || namespace === "" || !this.#namespaced) return this.#root;
    this.#checkNamespace(namespace);
    return `${this.#root}${namespace}/`;
  }

  #checkNamespace(namespace: string, rest = ""): void {
    if (namespace !== "." && namespace !== ".." && !/[\0/]/.test(namespace)) return;
    throw new StatusError(500, "", `invalid key: ${goQuote(`/${this.#storageName}/${namespace}${rest}`)}`);
  }

  nameOf(key: string): string {
    return key.slice(key.lastIndexOf("/") + 1);
  }
}

function requireNamespace(namespace: string | undefined): string {
  if (namespace === undefined || namespace === "") throw badRequest("Namespace parameter required.");
  return namespace;
}

function checkName(name: string): void {
  // NUL separates key and revision in the keys of the embedded store.
  const reasons = [...pathSegment(name), ...(name.includes("\0") ? ["may not contain NUL"] : [])];
  if (reasons.length > 0) throw badRequest(`Name parameter invalid: ${goQuote(name)}: ${reasons.join(";")}`);
}
