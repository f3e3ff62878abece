/** Validates an EncryptionConfiguration as Kubernetes does. */
import { type FieldError, invalidField, requiredField, unquoted } from "../../schema/validation/field-error.ts";
import { goQuote } from "../../schema/value/go-quote.ts";
import { parseDuration } from "../../schema/value/time.ts";
import type {
  EncryptionConfiguration,
  KeysConfiguration,
  KmsConfiguration,
  ProviderConfiguration,
} from "./configuration-schema.ts";
import { groupOf, resourceOf } from "./encrypted-resources.ts";

const AES_KEY_BYTES = [16, 24, 32];
const SECRETBOX_KEY_BYTES = [32];
const OVERLAP =
  "using overlapping resources such as 'secrets' and '*.' in the same resource list is not allowed as they will be masked";
/** Resources without a REST API. */
const INTERNAL_RESOURCES = ["apiserveripinfo", "serviceipallocations", "servicenodeportallocations"];
const PROVIDER_FIELDS = ["aesgcm", "aescbc", "secretbox", "identity", "kms"] as const;

/** `reload`: whether the file is read again when it changes. */
export function validateConfiguration(
  { resources = [] }: EncryptionConfiguration,
  reload: boolean,
): readonly FieldError[] {
  if (resources.length === 0) return [requiredField("resources", "at least one resources is required")];
  const kmsNames = new Set<string>();
  return resources.flatMap(({ resources: names = [], providers = [] }, index) => {
    const path = `resources[${index}]`;
    const [ofNames, ofProviders] = [`${path}.resources`, `${path}.providers`];
    return [
      ...(names.length === 0 ? [requiredField(ofNames, `at least one ${ofNames} is required`)] : []),
      ...validateOverlap(names, ofNames),
      ...names.flatMap((name, position) => validateResource(name, `${ofNames}[${position}]`)),
      ...(providers.length === 0 ? [requiredField(ofProviders, `at least one ${ofProviders} is required`)] : []),
      ...providers.flatMap((each, position) =>
        validateProvider(each, `${ofProviders}[${position}]`, { names: kmsNames, reload }),
      ),
    ];
  });
}

function validateOverlap(names: readonly string[], path: string): readonly FieldError[] {
  if (names.length < 2) return [];
  if (new Set(names).size < names.length) {
    return [invalidField(path, names, "the same resource cannot be specified multiple times")];
  }
  const overlaps = names.includes("*.*") || names.some((name) => isMasked(name, names));
  return overlaps ? [invalidField(path, names, OVERLAP)] : [];
}

/** Whether a wildcard of the same group stands beside the name. */
function isMasked(name: string, names: readonly string[]): boolean {
  return resourceOf(name) !== "*" && names.some((each) => resourceOf(each) === "*" && groupOf(each) === groupOf(name));
}

function validateResource(name: string, path: string): readonly FieldError[] {
  const group = groupOf(name);
  const problem = /[A-Z]/.test(name)
    ? "resource name should not contain capital letters"
    : name === "*"
      ? "use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources"
      : INTERNAL_RESOURCES.includes(name)
        ? "resources which do not have REST API/s cannot be encrypted"
        : group === "events.k8s.io" || group === "events.svc.io"
          ? "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' instead in the config file"
          : group === "extensions"
            ? "'extensions' group has been removed and cannot be used for encryption"
            : group === "*" && resourceOf(name) !== "*"
              ? "encrypting the same resource across groups is not supported"
              : undefined;
  return problem === undefined ? [] : [invalidField(path, name, problem)];
}

/** The names of KMS providers so far. */
interface KmsNames {
  readonly names: Set<string>;
  readonly reload: boolean;
}

function validateProvider(provider: ProviderConfiguration, path: string, kmsNames: KmsNames): readonly FieldError[] {
  const given = PROVIDER_FIELDS.filter((field) => provider[field] !== undefined && provider[field] !== null);
  const shown = unquoted(formatProvider(provider));
  const expected = "provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, Secretbox, Identity";
  if (given.length === 0) return [invalidField(path, shown, expected)];
  const several = "more than one provider specified in a single element, should split into different list elements";
  const errors = given.length > 1 ? [invalidField(path, shown, several)] : [];
  if (provider.kms) return [...errors, ...validateKms(provider.kms, `${path}.kms`, kmsNames)];
  if (provider.aesgcm) return [...errors, ...validateKeys(provider.aesgcm, `${path}.aesgcm.keys`, AES_KEY_BYTES)];
  if (provider.aescbc) return [...errors, ...validateKeys(provider.aescbc, `${path}.aescbc.keys`, AES_KEY_BYTES)];
  if (provider.secretbox) {
    return [...errors, ...validateKeys(provider.secretbox, `${path}.secretbox.keys`, SECRETBOX_KEY_BYTES)];
  }
  return errors;
}

/** As Go prints it. The value must not contain a secret. */
function formatProvider(provider: ProviderConfiguration): string {
  const part = (name: string, type: string, value: unknown): string =>
    `${name}:(*apiserver.${type})(${value ? "0x1" : "nil"})`;
  const parts = [
    part("AESGCM", "AESConfiguration", provider.aesgcm),
    part("AESCBC", "AESConfiguration", provider.aescbc),
    part("Secretbox", "SecretboxConfiguration", provider.secretbox),
    part("Identity", "IdentityConfiguration", provider.identity),
    part("KMS", "KMSConfiguration", provider.kms),
  ];
  return `apiserver.ProviderConfiguration{${parts.join(", ")}}`;
}

function validateKeys({ keys = [] }: KeysConfiguration, path: string, bytes: readonly number[]): readonly FieldError[] {
  if (keys.length === 0) return [requiredField(path, "at least one keys is required")];
  return keys.flatMap(({ name = "", secret = "" }, index) => {
    const at = `${path}[${index}]`;
    const errors = name === "" ? [requiredField(`${at}.name`, "name is a mandatory field for a key")] : [];
    return [...errors, ...validateSecret(secret, `${at}.secret`, bytes)];
  });
}

function validateSecret(secret: string, path: string, bytes: readonly number[]): readonly FieldError[] {
  if (secret === "") return [requiredField(path, "secret is a mandatory field for a key")];
  if (!isBase64(secret)) return [invalidField(path, "REDACTED", "secrets must be base64 encoded")];
  const { length } = Buffer.from(secret, "base64");
  if (bytes.includes(length)) return [];
  const why = `secret is not of the expected length, got ${length}, expected one of [${bytes.join(" ")}]`;
  return [invalidField(path, "REDACTED", why)];
}

function isBase64(text: string): boolean {
  const bare = text.replace(/[\r\n]/g, "");
  return bare.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(bare);
}

function validateKms(kms: KmsConfiguration, path: string, { names, reload }: KmsNames): readonly FieldError[] {
  const { name = "", apiVersion = "v1", endpoint = "", cachesize, timeout } = kms;
  const version = apiVersion === "" ? "v1" : apiVersion;
  const errors: FieldError[] = [];
  if (name === "") errors.push(requiredField(`${path}.name`, "name is a mandatory field for a provider"));
  if (version !== "v1" && name.includes(":")) {
    errors.push(invalidField(`${path}.name`, name, `invalid KMS provider name ${name}, must not contain ':'`));
  }
  if ((reload || version !== "v1") && names.has(name)) {
    errors.push(invalidField(`${path}.name`, name, `duplicate KMS provider name ${name}, names must be unique`));
  }
  names.add(name);
  const nanoseconds = timeout ? (parseDuration(timeout) ?? 0n) : undefined;
  if (nanoseconds !== undefined && nanoseconds <= 0n) {
    const shown = unquoted(`v1.Duration{Duration:${nanoseconds}}`);
    errors.push(invalidField(`${path}.timeout`, shown, "timeout should be a positive value"));
  }
  errors.push(...validateEndpoint(endpoint, `${path}.endpoint`));
  if (version !== "v1" && cachesize !== undefined && cachesize !== null) {
    errors.push(invalidField(`${path}.cachesize`, cachesize, "cachesize is not supported in v2"));
  }
  if (version === "v1" && cachesize === 0) {
    errors.push(invalidField(`${path}.cachesize`, 0, "cachesize should be a positive value, or negative to disable"));
  }
  if (version !== "v1" && version !== "v2") {
    // The text of Kubernetes, which names the field in place of its value.
    const why = "unsupported apiVersion apiVersion for KMS provider, only v1 and v2 are supported";
    errors.push(invalidField(`${path}.apiVersion`, version, why));
  }
  return errors;
}

function validateEndpoint(endpoint: string, path: string): readonly FieldError[] {
  if (endpoint === "") return [invalidField(path, endpoint, "endpoint is a mandatory field for a kms")];
  const [scheme = "", ...rest] = endpoint.split(":");
  if (rest.length === 0) return [invalidField(path, endpoint, unsupportedScheme(""))];
  if (!/^[a-z][a-z0-9+.-]*$/i.test(scheme)) {
    // The errors of Go's `url.Parse` for text before the first colon that is no scheme.
    const problem = scheme === "" ? "missing protocol scheme" : "first path segment in URL cannot contain colon";
    const why = `parse ${goQuote(endpoint)}: ${problem}`;
    return [invalidField(path, endpoint, `invalid endpoint for kms provider, error: ${why}`)];
  }
  if (scheme.toLowerCase() === "unix") return [];
  return [invalidField(path, endpoint, unsupportedScheme(scheme.toLowerCase()))];
}

function unsupportedScheme(scheme: string): string {
  return `unsupported scheme "${scheme}" for KMS provider, only unix is supported`;
}
