/**
 * What registry credentials are for: a host, whose labels may be shell patterns, perhaps a port, and the beginning of a
 * path. `*.example.com` is for `a.example.com/x`, not for `example.com` or `a.b.example.com`.
 */
import { matchesGlob, validateGlob } from "../../std/glob.ts";

interface Location {
  readonly labels: readonly string[];
  readonly port: string;
  readonly path: string;
}

/** Whether credentials for `pattern` are for an image, or a repository, given without a scheme. */
export function matchesImage(pattern: string, image: string): boolean {
  const wanted = parseLocation(pattern);
  const given = parseLocation(image);
  return (
    wanted.port === given.port &&
    wanted.labels.length === given.labels.length &&
    given.path.startsWith(wanted.path) &&
    wanted.labels.every((label, place) => matchesGlob(label, given.labels[place] ?? ""))
  );
}

/** Why nothing could ever match the pattern; undefined when it is one. */
export function findImagePatternProblem(pattern: string): string | undefined {
  const host = hostOf(pattern);
  if (/^https?:\/\//.test(pattern)) return "a host without a scheme is expected";
  if (host === "") return "there is no host";
  // biome-ignore lint/suspicious/noControlCharactersInRegex: no host holds any
  const wrong = /[\u0000-\u0020\u007f"<>^`{|}%@]/.exec(host)?.[0];
  if (wrong !== undefined) return `invalid character ${JSON.stringify(wrong)} in host name`;
  const port = /:([^\]]*)$/.exec(host)?.[1] ?? "";
  if (!/^\d*$/.test(port)) return `invalid port ":${port}" after host`;
  try {
    validateGlob(host);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

function parseLocation(text: string): Location {
  const host = hostOf(text);
  const path = text.slice(host.length).replace(/[?#].*$/s, "");
  const [, name = host, port = ""] = /^(.*):(\d*)$/s.exec(host) ?? [];
  return { labels: name.split("."), port, path };
}

function hostOf(text: string): string {
  return /^[^/?#]*/.exec(text)?.[0] ?? "";
}
