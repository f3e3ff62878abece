/** The `ExecCredential` that a credential plugin prints. Errors do not quote it, because it contains secrets. */
import * as z from "zod/mini";

export interface ExecCredential {
  readonly token?: string | undefined;
  readonly pair?: { readonly cert: string; readonly key: string } | undefined;
  /** In milliseconds since 1970; undefined: valid until a server rejects it. */
  readonly expires: number | undefined;
}

const text = z.pipe(
  z.optional(z.nullable(z.string())),
  z.transform((value) => value ?? ""),
);

const response = z.object({
  kind: z.literal("ExecCredential"),
  apiVersion: z.string(),
  status: z.optional(z.unknown()),
});

const credential = z.object({
  token: text,
  clientCertificateData: text,
  clientKeyData: text,
  expirationTimestamp: text,
});

const PEM = "-----BEGIN ";

export function parseExecCredential(json: string, apiVersion: string): ExecCredential {
  const { status } = parseResponse(json, apiVersion);
  if (typeof status !== "object" || status === null) throw new Error("exec plugin didn't return a status field");
  const parsed = credential.safeParse(status);
  if (!parsed.success) {
    throw new Error(`exec plugin returned a ${parsed.error.issues[0]?.path.join(".")} that is not a string`);
  }
  const { token, clientCertificateData: cert, clientKeyData: key, expirationTimestamp: time } = parsed.data;
  if (token === "" && cert === "") throw new Error("exec plugin didn't return a token or cert/key pair");
  if ((cert === "") !== (key === "")) throw new Error("exec plugin returned only certificate or key, not both");
  if (cert !== "" && !(cert.includes(PEM) && key.includes(PEM))) {
    throw new Error("exec plugin returned a certificate or key that is not PEM");
  }
  const expires = time === "" ? undefined : Date.parse(time);
  if (Number.isNaN(expires)) throw new Error("exec plugin returned an expirationTimestamp that is not a time");
  return {
    ...(token === "" ? {} : { token }),
    ...(cert === "" ? {} : { pair: { cert, key } }),
    expires,
  };
}

function parseResponse(json: string, apiVersion: string): z.infer<typeof response> {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    throw new Error("decoding stdout: it is not JSON");
  }
  const parsed = response.safeParse(value);
  if (!parsed.success || parsed.data.apiVersion !== apiVersion) {
    throw new Error(`exec plugin is configured to use API version ${apiVersion}, and responded with another`);
  }
  return parsed.data;
}
