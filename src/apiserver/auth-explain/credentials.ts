/** Reads a token and a certificate, and describes their content before it is verified. */
import { readFileSync } from "node:fs";
import { bearerToken } from "../../auth/authn/token/bearer-token.ts";
import { type Certificate, readBundle } from "../../auth/authn/x509/certificate-chain.ts";
import { isPlainObject } from "../../schema/value/plain-object.ts";

export interface ClientCredentials {
  readonly authorization: string | undefined;
  readonly certificates: readonly Uint8Array[];
  /** Lines for the operator, without secrets. */
  readonly description: readonly string[];
}

/** Throws a sentence for the operator. */
export function readCredentials(
  flags: Readonly<Record<"token" | "token-file" | "client-certificate", string>>,
): ClientCredentials {
  const certificateFile = flags["client-certificate"];
  const chain = certificateFile === "" ? [] : readCertificates(certificateFile);
  const token = readToken(flags);
  return {
    authorization: token === undefined ? undefined : `Bearer ${token}`,
    certificates: chain.map(({ x509 }) => x509.raw),
    description: [
      ...chain.slice(0, 1).flatMap(describeCertificate),
      ...(token === undefined ? [] : describeToken(token)),
      ...(token === undefined && chain.length === 0 ? ["none: the request is anonymous"] : []),
    ],
  };
}

function readCertificates(file: string): readonly Certificate[] {
  try {
    return readBundle(readFileSync(file, "utf8"));
  } catch (cause) {
    throw new Error(`Cannot use --client-certificate="${file}": ${(cause as Error).message}`, { cause });
  }
}

const STANDARD_INPUT = 0;

function readToken({
  token,
  "token-file": file,
}: Readonly<Record<"token" | "token-file", string>>): string | undefined {
  if (token !== "" && file !== "") throw new Error("--token and --token-file cannot be used together");
  if (token !== "" && token !== "-") return token;
  if (token === "" && file === "") return undefined;
  try {
    const text = readFileSync(token === "-" ? STANDARD_INPUT : file, "utf8").trim();
    return bearerToken(text) ?? text;
  } catch (cause) {
    throw new Error(`Cannot read the token: ${(cause as Error).message}`, { cause });
  }
}

function describeCertificate({ x509, notBefore, notAfter, usages }: Certificate): readonly string[] {
  const one = (text: string): string => text.split("\n").join(", ");
  return [
    `client certificate of ${one(x509.subject)}`,
    `  issued by ${one(x509.issuer)}`,
    `  valid from ${new Date(notBefore).toISOString()} to ${new Date(notAfter).toISOString()}`,
    ...(usages === undefined ? [] : [`  for ${usages.map((usage) => USAGES[usage] ?? usage).join(", ")}`]),
  ];
}

const USAGES: Readonly<Record<string, string>> = {
  "1.3.6.1.5.5.7.3.1": "server authentication",
  "1.3.6.1.5.5.7.3.2": "client authentication",
};

/** Lists the claims that select the authenticator of the token, and its validity. */
function describeToken(token: string): readonly string[] {
  const claims = unverifiedClaims(token);
  if (claims === undefined) return [`bearer token of ${token.length} characters, which is no JWT`];
  const time = (value: unknown): string =>
    typeof value === "number" ? `${value} (${new Date(value * 1000).toISOString()})` : JSON.stringify(value);
  const shown = [
    ...["iss", "sub", "aud"].map((name) => [name, JSON.stringify(claims[name])] as const),
    ...["iat", "nbf", "exp"].map((name) => [name, time(claims[name])] as const),
  ].filter(([name]) => claims[name] !== undefined);
  return [
    "bearer token, a JWT with these claims (not verified):",
    ...shown.map(([name, value]) => `  ${name}: ${value}`),
  ];
}

/** Undefined for a token that is no JWT. */
export function unverifiedClaims(token: string): Readonly<Record<string, unknown>> | undefined {
  const [, payload = ""] = /^[\w-]+\.([\w-]+)\.[\w-]*$/.exec(token) ?? [];
  try {
    const claims: unknown = JSON.parse(Buffer.from(payload, "base64url").toString());
    return isPlainObject(claims) ? claims : undefined;
  } catch {
    return undefined;
  }
}

/** Which checks of a client certificate fail, with the authorities of `caPem`. */
export function findCertificateProblems(der: Uint8Array, caPem: string, now: number): readonly string[] {
  const [leaf] = readBundle(toPem(der));
  if (leaf === undefined) return [];
  const roots = readBundle(caPem);
  const { x509, notBefore, notAfter, usages } = leaf;
  const problems: string[] = [];
  if (now < notBefore) problems.push(`it is valid from ${new Date(notBefore).toISOString()} only`);
  if (now > notAfter) problems.push(`it has expired at ${new Date(notAfter).toISOString()}`);
  if (usages !== undefined && !usages.some((usage) => CLIENT_USAGES.includes(usage))) {
    problems.push("it is not for client authentication (extended key usage)");
  }
  const issuers = roots.filter((root) => x509.checkIssued(root.x509));
  if (issuers.length === 0) {
    const names = roots.map((root) => JSON.stringify(root.x509.subject.split("\n").join(", "))).join("; ");
    problems.push(`its issuer is none of the authorities, nor signed by one: ${names}`);
  } else if (!issuers.some((root) => x509.verify(root.x509.publicKey))) {
    problems.push("an authority has the name of its issuer, and another key: the authority was created again");
  } else if (issuers.every((root) => now > root.notAfter)) problems.push("its authority has expired");
  return problems;
}

const CLIENT_USAGES = ["1.3.6.1.5.5.7.3.2", "2.5.29.37.0"];

function toPem(der: Uint8Array): string {
  const lines =
    Buffer.from(der)
      .toString("base64")
      .match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`;
}
