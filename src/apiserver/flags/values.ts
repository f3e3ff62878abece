/** Value types of the API server's flags. */
import { plugins } from "../../admission/plugins/built-in-plugins.ts";
import { findNearest } from "../../flags/distance.ts";
import { ValueError, type ValueType } from "../../flags/flag.ts";
import { splitCsv } from "../../flags/types/csv.ts";
import { strings } from "../../flags/types/list.ts";
import { type Pairs, pairs } from "../../flags/types/map.ts";
import { pattern } from "../../flags/types/text.ts";

/** Plugins that are enabled by default. */
export const defaultAdmissionPlugins: readonly string[] = plugins
  .filter(({ enabledByDefault }) => enabledByDefault)
  .map(({ name }) => name);

const names: readonly string[] = plugins.map(({ name }) => name).sort();
const pluginList = strings({ choices: names });

/** Names of admission plugins. */
export const admissionPlugins: ValueType<readonly string[]> = {
  ...pluginList,
  parse(text) {
    const list = splitCsv(text);
    const unknown = list.find((name) => !names.includes(name));
    if (unknown === undefined) return list;
    const nearestName = findNearest(unknown, names);
    const hint = nearestName === undefined ? "" : `: did you mean ${nearestName}?`;
    throw new ValueError(`plugin ${JSON.stringify(unknown)} is unknown${hint}`);
  },
};

/** Node address types in the default order of preference. */
export const addressTypes: readonly string[] = ["Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP"];

/** `api/beta=false,apps/v1=true`: stages, versions of the core group, groups, their versions, or resources of these. */
export const runtimeConfig: ValueType<Pairs> = pairs({
  allowed:
    "api/all, api/ga, api/beta, api/alpha, v1, group, group/version or group/version/resource, each =true or =false",
  accepts: (key, value) =>
    (value === "true" || value === "false") &&
    (/^api\/(all|ga|beta|alpha|legacy)$/.test(key) ||
      /^([a-z0-9.-]+\/)?v\d+((alpha|beta)\d+)?(\/[a-z]+)?$/.test(key) ||
      /^(?!api$)[a-z0-9.-]+$/.test(key)),
  sample: "api/beta=false,apps/v1=true",
  wrong: "api/some=true",
});

/** A port as text, empty for none, because the flag is a string. */
export const portText: ValueType<string> = pattern(
  "a port between 1 and 65535",
  (value) => value === "" || (/^\d{1,5}$/.test(value) && Number(value) >= 1 && Number(value) <= 65_535),
  "6443",
);

export function isHstsDirective(value: string): boolean {
  return /^(max-age=\d+|includeSubDomains|preload)$/.test(value);
}

/**
 * Whether the text is a regular expression whose alternatives all match whole hosts of origins. Without anchors
 * `example.com` would match `https://example.com.evil.net`.
 */
export function isOriginPattern(value: string): boolean {
  try {
    new RegExp(value, "u");
  } catch {
    return false;
  }
  return topLevelAlternatives(value).every((text) => /^(?:\^|:?\/\/)/.test(text) && endsAtHostEnd(text));
}

function endsAtHostEnd(pattern: string): boolean {
  return /(?:^|[^\\])(?:\\\\)*\$$/.test(pattern) || /\((?:\?:)?:(?:\\d\+)?\|\$\)$/.test(pattern);
}

/** The alternatives outside of groups and character classes. */
function topLevelAlternatives(pattern: string): readonly string[] {
  const alternatives = [""];
  let depth = 0;
  let inClass = false;
  for (const [token] of pattern.matchAll(/\\[\s\S]|[\s\S]/g)) {
    if (inClass) inClass = token !== "]";
    else if (token === "[") inClass = true;
    else if (token === "(") depth++;
    else if (token === ")") depth--;
    if (token === "|" && depth === 0 && !inClass) alternatives.push("");
    else alternatives[alternatives.length - 1] += token;
  }
  return alternatives;
}

/** `group/resource#server;server`; the core group is empty: `/events#…`. */
export function isServersOverride(value: string): boolean {
  return /^[a-z0-9.-]*\/[a-z]+#[a-z]+:\/\/[^;\s]+(;[a-z]+:\/\/[^;\s]+)*$/.test(value);
}

/** `resource[.group]#size` */
export function isCacheSize(value: string): boolean {
  return /^[a-z]+(\.[a-z0-9.-]+)?#\d{1,9}$/.test(value);
}

/** This release can emulate the last three minor versions. */
export function isEmulatedVersion(value: string): boolean {
  return /^(svc=)?1\.(31|32|33)$/.test(value);
}

/** `1.32`, from the last value. */
export function emulatedVersion(values: readonly string[]): string {
  return values.at(-1)?.replace(/^svc=/, "") ?? "1.33";
}
