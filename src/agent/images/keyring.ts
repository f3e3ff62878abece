/** Registry credentials of one source, by the patterns of the images that they are for. */
import type { AuthConfig } from "../runtime/cri/image.ts";
import type { RegistryAuths } from "./docker-config.ts";
import { matchesImage } from "./image-pattern.ts";

/** The source of credentials. It determines which pods may use an image that was pulled with them. */
export type CredentialSource =
  | { readonly kind: "node" }
  | { readonly kind: "account" }
  | { readonly kind: "secret"; readonly namespace: string; readonly name: string; readonly uid: string };

export interface Credential {
  readonly auth: AuthConfig;
  readonly source: CredentialSource;
}

/** Docker Hub's name in Docker's files. */
const DEFAULT_REGISTRY = "index.docker.io";

export class Keyring {
  readonly #byPattern = new Map<string, Credential[]>();

  add(auths: RegistryAuths, source: CredentialSource): void {
    for (const [location, auth] of auths) {
      const pattern = toPattern(location);
      this.#byPattern.set(pattern, [...(this.#byPattern.get(pattern) ?? []), { auth, source }]);
    }
  }

  /** Credentials for a repository like `docker.io/library/busybox`, those of the more specific pattern first. */
  lookup(repository: string): readonly Credential[] {
    const patterns = [...this.#byPattern.keys()].sort((a, b) => (a < b ? 1 : -1));
    const found = patterns
      .filter((pattern) => matchesImage(pattern, repository))
      .flatMap((pattern) => this.#byPattern.get(pattern) ?? []);
    if (found.length > 0 || !isDockerHub(repository)) return found;
    return this.#byPattern.get(DEFAULT_REGISTRY) ?? [];
  }
}

/** Removes what Docker's clients add to a host: a scheme, and the version of the registry's API. */
function toPattern(location: string): string {
  const [, host = "", path = ""] = /^(?:https?:\/\/)?([^/?#]*)([^?#]*)/.exec(location) ?? [];
  const own = /^\/v[12]\//.test(path) ? path.slice("/v1".length) : path;
  return own === "/" ? host : `${host}${own}`;
}

function isDockerHub(repository: string): boolean {
  return /^(?:index\.)?docker\.io\//.test(repository);
}
