/**
 * Patterns of registry credentials: a host, whose labels may be glob patterns, an optional port, and a prefix of the
 * path. `*.example.com` matches `a.example.com/x`, not `example.com` or `a.b.example.com`.
 */
import { matchesGlob, validateGlob } from "../../std/glob.ts";

interface Location {
  readonly labels: readonly string[];
  readonly port: string;
  readonly path: string;
}

/** Whether the pattern matches an image or a repository, given without a scheme. */
export function matchesImage(pattern: string, image: string): boolean {
  const expected = parseLocation(pattern);
  const actual = parseLocation(image);
  return (
    expected.port === actual.port &&
    expected.labels.length === actual.labels.length &&
    actual.path.startsWith(expected.path) &&
    expected.labels.every((label, index) => matchesGlob(label, actual.labels[index] ?? ""))
  );
}

/** Why the pattern is invalid; undefined when it is valid. */
export function findImagePatternProblem(pattern: string): string | undefined {
  const host = hostOf(pattern);
  if (/^https?:\/\//.test(pattern)) return "a host without a scheme is expected";
  if (host === "") return "there is no host";
  // biome-ignore lint/suspicious/noControlCharactersInRegex: no host contains any
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
