/** Kubernetes' rules for the members of a TracingConfiguration, which several programs have in their configuration. */

import { goQuote } from "../value/go-quote.ts";
import { type BadValue, type FieldError, invalidField } from "./field-error.ts";

const RATE_MAX = 1_000_000;
const SCHEMES = ["dns", "unix", "unix-abstract"];

/** `path`: of the configuration in its file; empty at its top. */
export function validateTracing(
  {
    endpoint,
    samplingRatePerMillion: rate,
  }: { readonly endpoint?: string | undefined; readonly samplingRatePerMillion?: number | undefined },
  path: string,
): readonly FieldError[] {
  const at = (member: string): string => (path === "" ? member : `${path}.${member}`);
  const errors: FieldError[] = [];
  const invalid = (member: string, value: BadValue, why: string): void =>
    void errors.push(invalidField(at(member), value, why));
  if (rate !== undefined && rate < 0) invalid("samplingRatePerMillion", rate, "sampling rate must be positive");
  if (rate !== undefined && rate > RATE_MAX) {
    const why = "sampling rate per million must be less than or equal to one million";
    invalid("samplingRatePerMillion", rate, why);
  }
  if (endpoint === undefined) return errors;
  const url = endpoint.includes("//") ? endpoint : `dns://${endpoint}`;
  const why = endpointError(url);
  if (why !== undefined) invalid("endpoint", url, why);
  return errors;
}

/** Returns the message of Go's URL parser. */
function endpointError(url: string): string | undefined {
  const quoted = goQuote(url);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  if (/[\x00-\x1f\x7f]/.test(url)) return `parse ${quoted}: net/url: invalid control character in URL`;
  const [, scheme, rest = ""] = /^([a-z][a-z0-9+.-]*):(.*)$/i.exec(url) ?? [];
  if (scheme === undefined) {
    return url.startsWith(":") ? `parse ${quoted}: missing protocol scheme` : unsupportedScheme("");
  }
  const host = /^\/\/([^/?#]*)/.exec(rest)?.[1] ?? "";
  const port =
    /^(?:\[[^\]]*\]|[^:]*)(:.*)?$/.exec(host)?.[1] ?? (host.includes(":") ? host.slice(host.indexOf(":")) : "");
  if (!/^(?::\d*)?$/.test(port)) return `parse ${quoted}: invalid port ${goQuote(port)} after host`;
  if (/[\s<>"]/.test(host)) {
    const character = /[\s<>"]/.exec(host)?.[0] ?? "";
    return `parse ${quoted}: invalid character ${goQuote(character)} in host name`;
  }
  return SCHEMES.includes(scheme.toLowerCase()) ? undefined : unsupportedScheme(scheme.toLowerCase());
}

function unsupportedScheme(scheme: string): string {
  return (
    `unsupported scheme: ${scheme}.  Options are none, dns, unix, or unix-abstract.  ` +
    "See https://github.com/grpc/grpc/blob/master/doc/naming.md"
  );
}
