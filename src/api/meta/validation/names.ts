/**
 * Name formats with Kubernetes' own messages. Each format returns the messages of what is wrong; an empty list for a
 * valid name.
 */
import { type FieldError, invalidField } from "../../../schema/validation/field-error.ts";

export type NameFormat = (text: string) => readonly string[];

/** Checks the text at `path` against the format. */
export function validateName(path: string, text: string, format: NameFormat): readonly FieldError[] {
  return format(text).map((problem) => invalidField(path, text, problem));
}

const DNS1123_LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const DNS1123_SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const DNS1035_LABEL = /^[a-z]([-a-z0-9]*[a-z0-9])?$/;
const WILDCARD_SUBDOMAIN = /^\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const LOOSE_SUBDOMAIN = /^_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*$/;
const QUALIFIED_NAME = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/;
const LABEL_VALUE = /^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$/;
const CONFIG_MAP_KEY = /^[-._a-zA-Z0-9]+$/;
const ENV_NAME = /^[\x20-\x3c\x3e-\x7e]+$/;

const LABEL_MAX_BYTES = 63;
const SUBDOMAIN_MAX_BYTES = 253;
const PORT_NAME_MAX_BYTES = 15;

const LABEL_MESSAGE =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN_MESSAGE =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const DNS1035_MESSAGE =
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const WILDCARD_MESSAGE =
  "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LOOSE_SUBDOMAIN_MESSAGE =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const QUALIFIED_MESSAGE =
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE_MESSAGE =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const CONFIG_MAP_KEY_MESSAGE =
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
const ENV_NAME_MESSAGE =
  "a valid environment variable name must consist only of printable ASCII characters other than '='";

function tooLong(bytes: number): string {
  return `must be no more than ${bytes} characters`;
}

const NO_PROBLEMS: readonly string[] = [];

/** The pattern matches ASCII only, so that a text that it matches has as many bytes as characters. */
function matchFormat(text: string, pattern: RegExp, maxBytes: number, message: string): readonly string[] {
  if (text.length <= maxBytes && pattern.test(text)) return NO_PROBLEMS;
  const problems: string[] = [];
  if (Buffer.byteLength(text) > maxBytes) problems.push(tooLong(maxBytes));
  if (!pattern.test(text)) problems.push(message);
  return problems;
}

/** The format of namespaces, containers and volumes. */
export const dns1123Label: NameFormat = (text) => {
  // A valid subdomain that is not a label contains a dot.
  const message = DNS1123_SUBDOMAIN.test(text) ? "must not contain dots" : LABEL_MESSAGE;
  return matchFormat(text, DNS1123_LABEL, LABEL_MAX_BYTES, message);
};

/** The format of most object names. */
export const dns1123Subdomain: NameFormat = (text) =>
  matchFormat(text, DNS1123_SUBDOMAIN, SUBDOMAIN_MAX_BYTES, SUBDOMAIN_MESSAGE);

/** The format of service names. */
export const dns1035Label: NameFormat = (text) => matchFormat(text, DNS1035_LABEL, LABEL_MAX_BYTES, DNS1035_MESSAGE);

/** A wildcard subdomain: `*.example.com`. */
export const wildcardSubdomain: NameFormat = (text) =>
  matchFormat(text, WILDCARD_SUBDOMAIN, SUBDOMAIN_MAX_BYTES, WILDCARD_MESSAGE);

/** DNS search domains, in which underscores are in use. */
export const looseSubdomain: NameFormat = (text) =>
  matchFormat(text, LOOSE_SUBDOMAIN, SUBDOMAIN_MAX_BYTES, LOOSE_SUBDOMAIN_MESSAGE);

/** Label keys, finalizers and resource names: an optional DNS subdomain with a slash, then a name. */
export const qualifiedName: NameFormat = (text) => (isQualifiedName(text) ? NO_PROBLEMS : qualifiedNameProblems(text));

function isQualifiedName(text: string): boolean {
  const slash = text.indexOf("/");
  const name = text.slice(slash + 1);
  if (name.length > LABEL_MAX_BYTES || !QUALIFIED_NAME.test(name)) return false;
  return slash === -1 || (slash <= SUBDOMAIN_MAX_BYTES && DNS1123_SUBDOMAIN.test(text.slice(0, slash)));
}

function qualifiedNameProblems(text: string): readonly string[] {
  const parts = text.split("/");
  const problems: string[] = [];
  if (parts.length > 2) {
    return [
      `a qualified name ${QUALIFIED_MESSAGE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ];
  }
  const [name, prefix] = parts.length === 2 ? [parts[1] ?? "", parts[0]] : [parts[0] ?? "", undefined];
  if (prefix === "") problems.push("prefix part must be non-empty");
  else if (prefix !== undefined) problems.push(...dns1123Subdomain(prefix).map((problem) => `prefix part ${problem}`));
  if (name === "") problems.push("name part must be non-empty");
  else if (Buffer.byteLength(name) > LABEL_MAX_BYTES) problems.push(`name part ${tooLong(LABEL_MAX_BYTES)}`);
  if (!QUALIFIED_NAME.test(name)) problems.push(`name part ${QUALIFIED_MESSAGE}`);
  return problems;
}

export const labelValue: NameFormat = (text) => matchFormat(text, LABEL_VALUE, LABEL_MAX_BYTES, LABEL_VALUE_MESSAGE);

/** Keys of ConfigMaps and Secrets, which are file names. */
export const configMapKey: NameFormat = (text) => [
  ...matchFormat(text, CONFIG_MAP_KEY, SUBDOMAIN_MAX_BYTES, CONFIG_MAP_KEY_MESSAGE),
  ...hiddenFileProblems(text),
];

/** The relaxed format, the default of Kubernetes 1.33. */
export const environmentName: NameFormat = (text) => {
  if (text === "") return ["environment variable name must be non-empty"];
  return ENV_NAME.test(text) ? [] : [ENV_NAME_MESSAGE];
};

const STRICT_ENV_NAME = /^[-._a-zA-Z][-._a-zA-Z0-9]*$/;
const STRICT_ENV_NAME_MESSAGE =
  "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', and must not start with a digit (e.g. 'my.env-name',  or 'MY_ENV.NAME',  or 'MyEnvName1', regex used for validation is '[-._a-zA-Z][-._a-zA-Z0-9]*')";

/** The format of names of environment variables before Kubernetes 1.32. */
export const strictEnvironmentName: NameFormat = (text) => [
  ...(STRICT_ENV_NAME.test(text) ? [] : [STRICT_ENV_NAME_MESSAGE]),
  ...hiddenFileProblems(text),
];

function hiddenFileProblems(text: string): string[] {
  if (text === ".") return ["must not be '.'"];
  if (text === "..") return ["must not be '..'"];
  return text.startsWith("..") ? ["must not start with '..'"] : [];
}

/** The format of container port names. */
export const portName: NameFormat = (text) => {
  const problems: string[] = [];
  if (text.length > PORT_NAME_MAX_BYTES) problems.push(`must be no more than ${PORT_NAME_MAX_BYTES} characters`);
  if (!/^[-a-z0-9]+$/.test(text))
    problems.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
  if (!/[a-z]/.test(text)) problems.push("must contain at least one letter (a-z)");
  if (text.includes("--")) problems.push("must not contain consecutive hyphens");
  if (text.startsWith("-") || text.endsWith("-")) problems.push("must not begin or end with a hyphen");
  return problems;
};

/** What every object name must satisfy, as a part of URL paths and storage keys. */
export const pathSegment: NameFormat = (text) => {
  if (text === "." || text === "..") return [`may not be '${text}'`];
  return ["/", "%"].filter((illegal) => text.includes(illegal)).map((illegal) => `may not contain '${illegal}'`);
};

/** A TCP or UDP port. */
export function portNumber(port: number): readonly string[] {
  return Number.isInteger(port) && port >= 1 && port <= 65535 ? [] : ["must be between 1 and 65535, inclusive"];
}
