/** Parses image references: registry, repository and tag. */

const domain = "(?:[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?|\\[[0-9a-fA-F:]+\\])(?::[0-9]+)?";
const component = "[a-z0-9]+(?:(?:\\.|_|__|-+)[a-z0-9]+)*";
const pattern = new RegExp(
  `^(?:(${domain})/)?(${component}(?:/${component})*)(?::([A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?(?:@([A-Za-z][A-Za-z0-9]*:[0-9a-fA-F]{32,}))?$`,
);

export interface ImageReference {
  /** `docker.io` when the reference names no registry. */
  readonly registry: string;
  readonly repository: string;
  /** The reference with `:latest` when it had neither tag nor digest. */
  readonly withTag: string;
}

/** Undefined when the text is no valid reference. */
export function parseImageReference(text: string): ImageReference | undefined {
  if (text.length > 2048) return undefined;
  const found = pattern.exec(text);
  if (found === null) return undefined;
  const [, first, path = "", tag, digest] = found;
  // A first part without dot, colon or "localhost" belongs to the repository: library/busybox.
  const isRegistry = first !== undefined && /[.:]|^localhost$/.test(first);
  if (!isRegistry && first !== undefined && first !== first.toLowerCase()) return undefined;
  const rest = isRegistry || first === undefined ? path : `${first}/${path}`;
  const registry = isRegistry ? first : "docker.io";
  const repository = registry === "docker.io" && !rest.includes("/") ? `library/${rest}` : rest;
  const withTag = tag === undefined && digest === undefined ? `${text}:latest` : text;
  return { registry, repository, withTag };
}
