/** What tokens of service accounts say, in the form that Kubernetes gives it. */

export interface Reference {
  readonly name: string;
  readonly uid?: string | undefined;
}

/** An account's token, good as long as the account and what it is bound to are there. */
export interface BoundClaims {
  readonly form: "bound";
  readonly audiences: readonly string[];
  readonly times: Times;
  /** Unique to the token; empty in those that other issuers made without. */
  readonly id: string;
  readonly namespace: string;
  readonly account: Reference;
  readonly pod?: Reference | undefined;
  /** Of a pod's token the pod's node; else what the token is bound to. */
  readonly node?: Reference | undefined;
  readonly secret?: Reference | undefined;
  /** In seconds since 1970: from then on its bearer should have another one. */
  readonly warnAfter?: number | undefined;
}

/** A token without an end that lies in a secret, as controllers made them before there were others. */
export interface LegacyClaims {
  readonly form: "legacy";
  readonly audiences: readonly string[];
  readonly times: Times;
  readonly namespace: string;
  readonly account: Reference;
  readonly secret: Reference;
}

/** In seconds since 1970. */
interface Times {
  readonly notBefore?: number | undefined;
  readonly issuedAt?: number | undefined;
  readonly expires?: number | undefined;
}

export interface Issued {
  readonly issuer: string;
  readonly id: string;
  readonly audiences: readonly string[];
  /** In seconds since 1970. */
  readonly now: number;
  readonly expires: number;
  /** When its bearer should have fetched another one. */
  readonly warnAfter?: number | undefined;
  readonly namespace: string;
  readonly account: Reference;
  readonly pod?: Reference | undefined;
  readonly node?: Reference | undefined;
  readonly secret?: Reference | undefined;
}

type Payload = Readonly<Record<string, unknown>>;

export const LEGACY_ISSUER = "kubernetes/serviceaccount";
const PRIVATE = "kubernetes.io";
const USER_PREFIX = "system:serviceaccount:";

export function accountUser(namespace: string, name: string): string {
  return `${USER_PREFIX}${namespace}:${name}`;
}

/** Members stand in the order that Kubernetes writes them. */
export function payloadOf(issued: Issued): Payload {
  const { issuer, id, audiences, now, expires, warnAfter, namespace, account, pod, node, secret } = issued;
  return {
    aud: audiences,
    exp: expires,
    iat: now,
    iss: issuer,
    jti: id,
    [PRIVATE]: { namespace, node, pod, secret, serviceaccount: account, warnafter: warnAfter },
    nbf: now,
    sub: accountUser(namespace, account.name),
  };
}

/** A token without an end, good as long as it lies in the secret. */
export interface LegacyIssued {
  readonly namespace: string;
  readonly account: Reference;
  readonly secret: Reference;
}

export function legacyPayloadOf({ namespace, account, secret }: LegacyIssued): Payload {
  const claim = `${PRIVATE}/serviceaccount`;
  return {
    iss: LEGACY_ISSUER,
    [`${claim}/namespace`]: namespace,
    [`${claim}/secret.name`]: secret.name,
    [`${claim}/service-account.name`]: account.name,
    [`${claim}/service-account.uid`]: account.uid,
    sub: accountUser(namespace, account.name),
  };
}

/** Undefined for a payload that is not of this form. */
export function readClaims(payload: Payload): BoundClaims | LegacyClaims | undefined {
  const { aud, iss, jti } = payload;
  const listed = typeof aud === "string" ? [aud] : (aud ?? []);
  if (!Array.isArray(listed) || !listed.every((each) => typeof each === "string")) return undefined;
  const times = timesOf(payload);
  if (times === undefined) return undefined;
  if (iss === LEGACY_ISSUER) return legacyClaims(payload, listed, times);
  const { namespace, serviceaccount, pod, node, secret, warnafter } = recordOf(payload[PRIVATE]) ?? {};
  const account = referenceOf(serviceaccount);
  if (typeof namespace !== "string" || account === undefined || payload.sub !== accountUser(namespace, account.name)) {
    return undefined;
  }
  const bound = { pod: referenceOf(pod), node: referenceOf(node), secret: referenceOf(secret) };
  // What cannot be read must not be taken for absent: the token would be bound to less than it says.
  if ([pod, node, secret].filter((each) => each !== undefined).length > Object.values(bound).filter(Boolean).length) {
    return undefined;
  }
  const id = typeof jti === "string" ? jti : "";
  const warnAfter = typeof warnafter === "number" ? warnafter : undefined;
  return { form: "bound", audiences: listed, times, id, namespace, account, ...bound, warnAfter };
}

function legacyClaims(payload: Payload, audiences: readonly string[], times: Times): LegacyClaims | undefined {
  const claim = (name: string): string => {
    const value = payload[`${PRIVATE}/serviceaccount/${name}`];
    return typeof value === "string" ? value : "";
  };
  const namespace = claim("namespace");
  const account = { name: claim("service-account.name"), uid: claim("service-account.uid") };
  const secret = { name: claim("secret.name") };
  if ([namespace, account.name, account.uid, secret.name].includes("")) return undefined;
  if (payload.sub !== accountUser(namespace, account.name)) return undefined;
  return { form: "legacy", audiences, times, namespace, account, secret };
}

function timesOf({ nbf, iat, exp }: Payload): Times | undefined {
  const [notBefore, issuedAt, expires] = [nbf, iat, exp].map((value) =>
    typeof value === "number" ? value : undefined,
  );
  const sent = [nbf, iat, exp].filter((value) => value !== undefined).length;
  const read = [notBefore, issuedAt, expires].filter((value) => value !== undefined).length;
  return sent === read ? { notBefore, issuedAt, expires } : undefined;
}

function referenceOf(value: unknown): Reference | undefined {
  const { name, uid } = recordOf(value) ?? {};
  if (typeof name !== "string" || name === "") return undefined;
  return { name, ...(typeof uid === "string" && uid !== "" ? { uid } : {}) };
}

function recordOf(value: unknown): Payload | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Payload) : undefined;
}
