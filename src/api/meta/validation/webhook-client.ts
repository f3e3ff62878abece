/** Rules for the client configuration of webhooks: a URL or a service, and a CA bundle. */
import { X509Certificate } from "node:crypto";
import { type FieldError, invalidField, requiredField, validateEach } from "../../../schema/validation/field-error.ts";
import { child } from "../../../schema/value/field-path.ts";
import { goQuote } from "../../../schema/value/go-quote.ts";
import { dns1123Subdomain, portNumber } from "./names.ts";

const URL_FORMAT = "; desired format: https://host[/path]";

export function validateWebhookUrl(text: string, field: string): readonly FieldError[] {
  const [, scheme = "", authority = "", rest = ""] =
    /^(?:([a-zA-Z][a-zA-Z0-9+.-]*):)?(?:\/\/([^/?#]*))?(.*)$/s.exec(text) ?? [];
  const broken = urlParseError(text, authority);
  if (broken !== undefined) return [requiredField(field, `url must be a valid URL: ${broken}${URL_FORMAT}`)];
  const [beforeFragment = "", fragment = ""] = rest.split(/#(.*)/s);
  const query = beforeFragment.split(/\?(.*)/s)[1] ?? "";
  const at = authority.lastIndexOf("@");
  const errors: FieldError[] = [];
  if (scheme.toLowerCase() !== "https") {
    errors.push(invalidField(field, scheme.toLowerCase(), `'https' is the only allowed URL scheme${URL_FORMAT}`));
  }
  if (authority.slice(at + 1) === "") errors.push(invalidField(field, "", `host must be specified${URL_FORMAT}`));
  if (at !== -1) {
    errors.push(invalidField(field, authority.slice(0, at), "user information is not permitted in the URL"));
  }
  if (fragment !== "") errors.push(invalidField(field, fragment, "fragments are not permitted in the URL"));
  if (query !== "") errors.push(invalidField(field, query, "query parameters are not permitted in the URL"));
  return errors;
}

/** The error of Go's URL parser; undefined when it accepts the text. */
function urlParseError(text: string, authority: string): string | undefined {
  const quoted = goQuote(text);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  if (/[\x00-\x1f\x7f]/.test(text)) return `parse ${quoted}: net/url: invalid control character in URL`;
  if (text.startsWith(":")) return `parse ${quoted}: missing protocol scheme`;
  const escaped = /%(?![0-9a-fA-F]{2}).{0,2}/s.exec(text);
  if (escaped !== null) return `parse ${quoted}: invalid URL escape ${goQuote(escaped[0])}`;
  const host = authority.slice(authority.lastIndexOf("@") + 1);
  const bad = /[ <>"]/.exec(host);
  if (bad !== null) return `parse ${quoted}: invalid character ${goQuote(bad[0])} in host name`;
  const port = /:([^\]:]*)$/.exec(host)?.[1];
  return port !== undefined && !/^\d*$/.test(port)
    ? `parse ${quoted}: invalid port ${goQuote(`:${port}`)} after host`
    : undefined;
}

export interface WebhookService {
  readonly name: string;
  readonly namespace: string;
  readonly path?: string | undefined;
  readonly port?: number | undefined;
}

export function validateWebhookService(service: WebhookService, field: string): readonly FieldError[] {
  const { name, namespace, path = "", port = 443 } = service;
  const problems = portNumber(port);
  return [
    ...(name === "" ? [requiredField(child(field, "name"), "service name is required")] : []),
    ...(namespace === "" ? [requiredField(child(field, "namespace"), "service namespace is required")] : []),
    ...(problems.length === 0
      ? []
      : [invalidField(child(field, "port"), port, `port is not valid: ${problems.join(", ")}`)]),
    ...validatePath(path, child(field, "path")),
  ];
}

function validatePath(path: string, field: string): readonly FieldError[] {
  if (path === "" || path === "/") return [];
  if (path === "//") return [invalidField(field, path, "segment[0] may not be empty")];
  const errors = path.startsWith("/") ? [] : [invalidField(field, path, "must start with a '/'")];
  const segments = path.slice(1).replace(/\/$/, "").split("/");
  return [
    ...errors,
    ...validateEach(segments, (segment, i) =>
      segment === ""
        ? [invalidField(field, path, `segment[${i}] may not be empty`)]
        : dns1123Subdomain(segment).map((problem) => invalidField(field, path, `segment[${i}]: ${problem}`)),
    ),
  ];
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----\r?\n[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g;

/** `bundle` is PEM in base64. */
export function validateCaBundle(bundle: string, field: string): readonly FieldError[] {
  const blocks = Buffer.from(bundle, "base64").toString("latin1").match(CERTIFICATE) ?? [];
  const load = (why: string): FieldError => invalidField(field, bundle, `unable to load root certificates: ${why}`);
  if (blocks.length === 0) return [load("unable to parse bytes as PEM block")];
  for (const block of blocks) {
    try {
      new X509Certificate(block);
    } catch (error) {
      return [load((error as Error).message)];
    }
  }
  return [];
}
