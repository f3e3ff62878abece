/** Which images require that a pod has credentials for them although they are on the node. */
import { parseImageReference } from "../../../api/core/pod-spec/image-reference.ts";

export type VerificationPolicy =
  | "NeverVerify"
  | "NeverVerifyPreloadedImages"
  | "NeverVerifyAllowlistedImages"
  | "AlwaysVerify";

export interface PullVerificationConfig {
  readonly policy: VerificationPolicy;
  /** Repositories, or prefixes that end in `/*`, which `NeverVerifyAllowlistedImages` exempts. */
  readonly allowlist: readonly string[];
}

/** `isPulled`: the agent has pulled the image, or has begun to. */
export type RequiresVerification = (image: string, isPulled: boolean) => boolean;

interface ImagePattern {
  readonly text: string;
  readonly isPrefix: boolean;
}

/** Throws when a pattern is invalid. */
export function createVerificationPolicy({ policy, allowlist }: PullVerificationConfig): RequiresVerification {
  switch (policy) {
    case "NeverVerify":
      return () => false;
    case "NeverVerifyPreloadedImages":
      return (_image, isPulled) => isPulled;
    case "AlwaysVerify":
      return () => true;
    case "NeverVerifyAllowlistedImages": {
      const patterns = allowlist.map(parsePattern);
      return (image) => !patterns.some((pattern) => matches(pattern, image));
    }
  }
}

/** Why a pattern of the list is invalid, in Kubernetes' words; undefined when none is. */
export function findAllowlistProblem(allowlist: readonly string[]): string | undefined {
  try {
    for (const pattern of allowlist) parsePattern(pattern);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

/** `docker.io/library/busybox` for `busybox:1`; undefined for an invalid name. */
export function toRepository(image: string): string | undefined {
  const reference = parseImageReference(image);
  return "error" in reference ? undefined : `${reference.registry}/${reference.repository}`;
}

function matches({ text, isPrefix }: ImagePattern, image: string): boolean {
  const repository = toRepository(image);
  return repository !== undefined && (isPrefix ? repository.startsWith(text) : repository === text);
}

function parsePattern(pattern: string): ImagePattern {
  if (pattern !== pattern.trim()) throw new Error(`leading/trailing spaces are not allowed: ${pattern}`);
  const isPrefix = pattern.endsWith("/*");
  const text = isPrefix ? pattern.slice(0, -1) : pattern;
  if (text === "") throw new Error(`the supplied pattern is too short: ${pattern}`);
  if (text.includes("*")) {
    throw new Error(`not a valid wildcard pattern, only patterns ending with '/*' are allowed: ${pattern}`);
  }
  if (isPrefix) {
    if (text === "/") throw new Error("at least registry hostname is required");
    return { text, isPrefix };
  }
  const reference = parseImageReference(text);
  if ("error" in reference) throw new Error(`failed to parse as an image name: ${reference.error}`);
  if (text !== `${reference.registry}/${reference.repository}`) {
    throw new Error(`neither tag nor digest is accepted in an image reference: ${pattern}`);
  }
  return { text, isPrefix };
}
