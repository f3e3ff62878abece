/** Image references as far as the agent must understand them: is it one, which registry, which tag. */

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

/** Undefined when the text is no reference. Bounded by the pattern's own limits and by the field's length. */
export function parseImageReference(text: string): ImageReference | undefined {
  if (text.length > 2048) return undefined;
  const found = pattern.exec(text);
  if (found === null) return undefined;
  const [, first, path = "", tag, digest] = found;
  // A first part without dot, colon or "localhost" belongs to the repository: library/busybox.
  const named = first !== undefined && /[.:]|^localhost$/.test(first);
  if (!named && first !== undefined && first !== first.toLowerCase()) return undefined;
  const rest = named || first === undefined ? path : `${first}/${path}`;
  const registry = named ? first : "docker.io";
  const repository = registry === "docker.io" && !rest.includes("/") ? `library/${rest}` : rest;
  const withTag = tag === undefined && digest === undefined ? `${text}:latest` : text;
  return { registry, repository, withTag };
}
