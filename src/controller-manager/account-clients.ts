/** Clients with the tokens of service accounts in kube-system, one account for each controller. */
import { serviceAccountKind } from "../api/core/service-account/kind.ts";
import type { Client, Transport } from "../client/client.ts";
import { statusCodeOf } from "../controllers/api-errors.ts";
import type { Clock } from "../std/time/clock.ts";

const NAMESPACE = "kube-system";
/** The validity that is requested. */
const TOKEN_SECONDS = 3600;
/** A token is replaced before its end, so that requests in flight have a valid one. */
const REPLACED_AFTER = 0.8;

interface Token {
  readonly text: string;
  /** On the monotonic clock. */
  readonly replacedAt: number;
}

/** Adds a token of the account to each request. Creates the account if it does not exist. */
export function accountTransport(
  account: string,
  { transport, client, clock }: { readonly transport: Transport; readonly client: Client; readonly clock: Clock },
): Transport {
  let current: Promise<Token> | undefined;
  const request = async (): Promise<Token> => {
    const token = await requestToken(client, account);
    return { text: token, replacedAt: clock.monotonic() + TOKEN_SECONDS * 1000 * REPLACED_AFTER };
  };
  const getToken = async (): Promise<Token> => {
    const token = await current?.catch(() => undefined);
    if (token !== undefined && clock.monotonic() < token.replacedAt) return token;
    // Requests at the same time share one token request.
    current = current === undefined || token !== undefined ? request() : current;
    const requested = current;
    requested.catch(() => {
      if (current === requested) current = undefined;
    });
    return await requested;
  };
  return async (call) => {
    const token = await getToken();
    const response = await transport({ ...call, headers: { ...call.headers, authorization: `Bearer ${token.text}` } });
    // The account was deleted and created again.
    if (response.status === 401) current = undefined;
    return response;
  };
}

async function requestToken(client: Client, name: string): Promise<string> {
  const subject = { namespace: NAMESPACE, name };
  const body = {
    apiVersion: "authentication.k8s.io/v1",
    kind: "TokenRequest",
    metadata: subject,
    spec: { audiences: [], expirationSeconds: TOKEN_SECONDS },
  };
  const send = (): Promise<unknown> => client.createSubresource(serviceAccountKind, subject, "token", body);
  let response: unknown;
  try {
    response = await send();
  } catch (error) {
    if (statusCodeOf(error) !== 404) throw error;
    await client.create(serviceAccountKind, { metadata: subject }).catch((conflict: unknown) => {
      if (statusCodeOf(conflict) !== 409) throw conflict;
    });
    response = await send();
  }
  const token = (response as { readonly status?: { readonly token?: unknown } } | undefined)?.status?.token;
  if (typeof token !== "string" || token === "")
    throw new Error(`the API server sent no token for ${NAMESPACE}/${name}`);
  return token;
}
