/** Group, version and kind of a JSON object, and their parts of Go's error messages. */

import { readTypeMeta } from "../schema/json/type-meta.ts";
import { goQuote } from "../schema/value/go-quote.ts";
import type { Kind } from "./kind.ts";
import { splitApiVersion } from "./meta/group-version.ts";
import { formatApiVersion, type Scheme, svcGroup } from "./scheme.ts";

export interface GroupVersionKind {
  readonly kind: string;
  readonly version: string;
  readonly group: string;
}

/** Part of Kubernetes' error messages. Servers with a scheme of their own serve two groups. */
const SCHEME_FILE = "pkg/api/legacyscheme/scheme.go:30";
const SCHEME_FILES: ReadonlyMap<string, string> = new Map([
  ["apiextensions.svc.io", "pkg/apiserver/apiserver.go:55"],
  ["apiregistration.svc.io", "pkg/apiserver/scheme/scheme.go:28"],
]);

/** Throws a `SyntaxError` with Go's message when the members are invalid; they are empty when absent. */
export function parseTypeMeta(value: unknown): GroupVersionKind {
  const { kind, apiVersion } = readTypeMeta(value);
  const found = splitApiVersion(apiVersion);
  if (found === undefined) throw new SyntaxError(`unexpected GroupVersion string: ${apiVersion}`);
  return { kind, group: found.group, version: found.version };
}

/** Those of the JSON object, with those of `expected` as default. Throws as `parseTypeMeta`. */
export function groupVersionKindOf(value: unknown, expected: GroupVersionKind): GroupVersionKind {
  const { kind, group, version } = parseTypeMeta(value);
  const isSameGroup = svcGroup(group) === svcGroup(expected.group);
  const named = version === "" && (group === "" || isSameGroup) ? expected : { group, version };
  return { kind: kind === "" ? expected.kind : kind, group: named.group, version: named.version };
}

/** The file of the scheme in which a server of Kubernetes looks for kinds of the group. */
export function schemeFileOf(group: string): string {
  return SCHEME_FILES.get(svcGroup(group)) ?? SCHEME_FILE;
}

export function notRegistered({ kind, group, version }: GroupVersionKind, scheme: string): string {
  const named = goQuote(formatApiVersion(group, version));
  return `no kind ${goQuote(kind)} is registered for version ${named} in scheme ${goQuote(scheme)}`;
}

/** Kinds of every group version, and kinds of the core group only. */
const OPTIONS = ["Create", "Delete", "Get", "List", "Patch", "Update"].map((verb) => `${verb}Options`);
const PER_GROUP_VERSION: ReadonlySet<string> = new Set([...OPTIONS, "WatchEvent"]);
const UNVERSIONED: ReadonlySet<string> = new Set([
  ...["APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "Status"],
]);

/** The Go type of a kind; undefined for unknown kinds. */
export function goTypeOf({ group, version, kind }: GroupVersionKind, scheme: Scheme | undefined): string | undefined {
  if (group === "" && version === "v1" && UNVERSIONED.has(kind)) return `v1.${kind}`;
  const kinds = (scheme?.kinds() ?? []).filter(
    (one) => one.custom !== true && one.group === svcGroup(group) && one.version === version,
  );
  if (kinds.length === 0) return undefined;
  if (PER_GROUP_VERSION.has(kind)) return `v1.${kind}`;
  const isOfOtherGroup = (scheme?.kinds() ?? []).some((one) =>
    one.subresources.some((part) => {
      return (
        part.kind === kind && part.version === version && part.group !== undefined && part.group === svcGroup(group)
      );
    }),
  );
  return isOfOtherGroup || kinds.some((one) => hasKind(one, kind)) ? `${version}.${kind}` : undefined;
}

function hasKind(one: Kind, kind: string): boolean {
  const isSubresource = one.subresources.some((part) => part.group === undefined && part.kind === kind);
  return one.kind === kind || one.listKind === kind || isSubresource;
}

/** The internal Go type of a kind. Events of both groups have the same one. */
export function internalType(group: string, kind: string): string {
  if (PER_GROUP_VERSION.has(kind)) return `v1.${kind}`;
  if (kind === "Event" || kind === "EventList" || group === "") return `core.${kind}`;
  const [first = ""] = group.split(".");
  return `${first === "internal" ? "apiserverinternal" : first}.${kind}`;
}
