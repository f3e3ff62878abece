/** Service account issuer discovery: the OpenID Connect discovery document and the JWKS. */
import { jsonWebKey, type VerificationKey } from "../../auth/service-account/keys.ts";
import type { HttpResponse } from "../../http/message.ts";
import { bytesResponse } from "../../http/respond.ts";

export interface IssuerDiscovery {
  /** `/.well-known/openid-configuration` */
  configuration(): Promise<HttpResponse>;
  /** `/openid/v1/jwks` */
  jwks(): Promise<HttpResponse>;
}

export interface IssuerDiscoveryOptions {
  readonly issuer: string;
  /** `--service-account-jwks-uri`; undefined: this server. */
  readonly jwksUri: string | undefined;
  readonly keys: () => Promise<readonly VerificationKey[]>;
  /** The host and port that clients connect to. */
  readonly address: () => string;
}

export const CONFIGURATION_PATH = "/.well-known/openid-configuration";
export const JWKS_PATH = "/openid/v1/jwks";

/** Undefined when the issuer is not an HTTPS URL. */
export function createIssuerDiscovery(options: IssuerDiscoveryOptions): IssuerDiscovery | undefined {
  const { issuer, jwksUri, keys, address } = options;
  if (!isDiscoverable(issuer)) return undefined;
  return {
    async configuration() {
      const publishedKeys = await keys();
      return discoveryResponse("application/json", {
        issuer,
        jwks_uri: jwksUri ?? `https://${address()}${JWKS_PATH}`,
        response_types_supported: ["id_token"],
        subject_types_supported: ["public"],
        id_token_signing_alg_values_supported: [...new Set(publishedKeys.map(({ algorithm }) => algorithm))].sort(),
      });
    },
    jwks: async () => discoveryResponse("application/jwk-set+json", { keys: (await keys()).map(jsonWebKey) }),
  };
}

function isDiscoverable(issuer: string): boolean {
  const url = URL.parse(issuer);
  return url?.protocol === "https:" && url.search === "" && url.hash === "";
}

function discoveryResponse(mediaType: string, value: unknown): HttpResponse {
  const response = bytesResponse(200, mediaType, Buffer.from(JSON.stringify(value)));
  return { ...response, headers: { ...response.headers, "cache-control": "public, max-age=3600" } };
}
