/** Parses image references: registry, repository and tag. The rules and errors are those of distribution/reference. */

const domain = "(?:[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?|\\[[0-9a-fA-F:]+\\])(?::[0-9]+)?";
const component = "[a-z0-9]+(?:(?:\\.|_|__|-+)[a-z0-9]+)*";
const digestAlgorithm = "[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*";
const pattern = new RegExp(
  `^${domain}/(${component}(?:/${component})*)(?::([A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?(?:@(${digestAlgorithm}:[0-9a-fA-F]{32,}))?$`,
);
const LATEST = "latest";
const DEFAULT_REGISTRY = "docker.io";
const REPOSITORY_LENGTH_MAX = 255;
/** Hexadecimal digits of a digest, by algorithm. */
const digestLengths: ReadonlyMap<string, number> = new Map([
  ["sha256", 64],
  ["sha384", 96],
  ["sha512", 128],
]);

export interface ImageReference {
  /** `docker.io` when the reference names no registry. */
  readonly registry: string;
  readonly repository: string;
  /** `latest` when the reference has neither tag nor digest; undefined when it has a digest only. */
  readonly tag: string | undefined;
  /** The reference with `:latest` when it had neither tag nor digest. */
  readonly withTag: string;
}

/** The error is Kubernetes' text. */
export function parseImageReference(text: string): ImageReference | { readonly error: string } {
  if (/^[a-f0-9]{64}$/.test(text)) {
    return { error: `invalid repository name (${text}), cannot specify 64-byte hexadecimal strings` };
  }
  const { registry, rest } = splitRegistry(text);
  const name = rest.split(":", 1)[0] ?? "";
  if (name !== name.toLowerCase()) {
    return { error: `invalid reference format: repository name (${name}) must be lowercase` };
  }
  const found = pattern.exec(`${registry}/${rest}`);
  if (found === null) {
    const isLower = pattern.test(`${registry}/${rest}`.toLowerCase());
    return { error: isLower ? "repository name must be lowercase" : "invalid reference format" };
  }
  const [, repository = "", tag, digest] = found;
  if (repository.length > REPOSITORY_LENGTH_MAX) {
    return { error: `repository name must not be more than ${REPOSITORY_LENGTH_MAX} characters` };
  }
  const error = digest === undefined ? undefined : findDigestError(digest);
  if (error !== undefined) return { error };
  const isBare = tag === undefined && digest === undefined;
  return { registry, repository, tag: isBare ? LATEST : tag, withTag: isBare ? `${text}:${LATEST}` : text };
}

/** A first part without dot, colon, upper case or "localhost" belongs to the repository: library/busybox. */
function splitRegistry(text: string): { readonly registry: string; readonly rest: string } {
  const slash = text.indexOf("/");
  const first = text.slice(0, Math.max(0, slash));
  const isRegistry = slash >= 0 && (/[.:]|^localhost$/.test(first) || first !== first.toLowerCase());
  const registry = !isRegistry || first === "index.docker.io" ? DEFAULT_REGISTRY : first;
  const rest = isRegistry ? text.slice(slash + 1) : text;
  return { registry, rest: registry === DEFAULT_REGISTRY && !rest.includes("/") ? `library/${rest}` : rest };
}

function findDigestError(digest: string): string | undefined {
  const [algorithm = "", encoded = ""] = digest.split(":");
  const length = digestLengths.get(algorithm);
  if (length === undefined) return "unsupported digest algorithm";
  if (encoded.length !== length) return "invalid checksum digest length";
  return /^[a-f0-9]+$/.test(encoded) ? undefined : "invalid checksum digest format";
}
