/** The `token` subresource of service accounts: issues tokens, which may be bound to a pod, node or secret. */
import type { BoundObjectReference, TokenRequest, TokenRequestSpec } from "../../api/authentication/token-request.ts";
import { nodeKind } from "../../api/core/node/kind.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { secretKind } from "../../api/core/secret/kind.ts";
import { serviceAccountKind } from "../../api/core/service-account/kind.ts";
import type { ServiceAccount } from "../../api/core/service-account/schema.ts";
import type { ApiObject, Kind } from "../../api/kind.ts";
import { parseApiVersion } from "../../api/scheme.ts";
import { badRequest, conflict, invalid, StatusError } from "../../api/status.ts";
import type { Reference, TokenClaims } from "../../auth/service-account/claims.ts";
import type { TokenIssuer } from "../../auth/service-account/issuer.ts";
import { type FieldError, invalidField, renderFieldError } from "../../schema/validation/field-error.ts";
import { goQuote } from "../../schema/value/go-quote.ts";
import { formatTime } from "../../schema/value/time.ts";
import { randomUuid } from "../../std/crypto/random.ts";
import { get } from "../get.ts";
import type { Registries } from "../registries.ts";
import type { Scope } from "../scope.ts";
import { runValidatingAdmission } from "../write/admission.ts";
import { metadataOf } from "../write/object-metadata.ts";
import type { Admission } from "../write/request.ts";

export interface TokenSettings {
  readonly issuer: TokenIssuer;
  /** Audiences of a token whose request has none. */
  readonly audiences: readonly string[];
  /** Upper limit of the requested expiration; 0 for none. */
  readonly maxSeconds: number;
  /** `--service-account-extend-token-expiration`: pods' tokens get a longer expiration than requested. */
  readonly extend: boolean;
  /** Upper limit of the external signer for extended tokens; a year when absent. */
  readonly extendedSecondsMax?: number | undefined;
}

/** The expiration that kubelets request for pods; as in Kubernetes, it identifies tokens to extend. */
const POD_TOKEN_SECONDS = 3607;
const EXTENDED_TOKEN_SECONDS = 31_536_000;

/**
 * Resolves with the request and the token in its status. `validate` validates the request, `warn` receives warnings.
 * Throws a 400, 404, 409 or 422.
 */
export async function requestToken(
  registries: Registries,
  settings: TokenSettings,
  scope: Scope,
  name: string,
  request: TokenRequest,
  checks: {
    readonly validate: (request: TokenRequest) => readonly FieldError[];
    readonly warn: (texts: readonly string[]) => void;
    readonly admission?: Admission | undefined;
    /** Adds an annotation to the audit event. */
    readonly annotate: (key: string, value: string) => void;
  },
): Promise<TokenRequest> {
  const subject = { group: scope.group, resource: "TokenRequest" };
  const misplaced = validateNameAndNamespace(request, name, scope.namespace);
  if (misplaced.length > 0) throw invalid({ ...subject, name }, misplaced, renderFieldError);
  const { object: account } = await get(registries.of(serviceAccountKind), coreScope(scope), name);
  const { clock, random } = registries.deps;
  const now = Math.floor(clock.now() / 1000);
  const sent = request.spec ?? {};
  const audiences = (sent.audiences ?? []).length === 0 ? settings.audiences : sent.audiences;
  const metadata = {
    ...request.metadata,
    name,
    namespace: scope.namespace,
    creationTimestamp: formatTime(clock.now()),
  };
  const errors = checks.validate(request);
  if (errors.length > 0) throw invalid({ ...subject, name: "" }, errors, renderFieldError);
  const completed = { ...request, metadata, spec: { ...sent, audiences } };
  await runValidatingAdmission({ options: { admission: checks.admission } }, completed, undefined);
  const bound = await resolveBoundObject(registries, coreScope(scope), account, sent.boundObjectRef);
  const spec = limitExpiration({ ...sent, audiences }, settings.maxSeconds, checks.warn);
  const seconds = spec.expirationSeconds ?? POD_TOKEN_SECONDS;
  const isExtended =
    settings.extend &&
    bound.pod !== undefined &&
    seconds === POD_TOKEN_SECONDS &&
    audiences.every((audience) => settings.audiences.includes(audience));
  const id = randomUuid(random);
  checks.annotate("authentication.kubernetes.io/issued-credential-id", `JTI=${id}`);
  const token = await settings.issuer.issue({
    id,
    audiences,
    now,
    expires:
      now +
      (isExtended ? Math.min(EXTENDED_TOKEN_SECONDS, settings.extendedSecondsMax ?? EXTENDED_TOKEN_SECONDS) : seconds),
    ...(isExtended ? { warnAfter: now + seconds } : {}),
    namespace: scope.namespace,
    account: referenceTo(account),
    ...bound,
  });
  return { metadata, spec, status: { token, expirationTimestamp: formatTime(clock.now() + seconds * 1000) } };
}

function coreScope({ namespace, user, signal }: Scope): Scope {
  return { namespace, user, signal, group: "" };
}

function validateNameAndNamespace(request: TokenRequest, name: string, namespace: string): readonly FieldError[] {
  const sent = metadataOf(request);
  const wrong = (member: string, value: string, what: string): readonly FieldError[] => [
    invalidField(`metadata.${member}`, value, `must match the service account ${what} if specified`),
  ];
  if (sent.name && sent.name !== name) return wrong("name", sent.name, "name");
  return sent.namespace && sent.namespace !== namespace ? wrong("namespace", sent.namespace, "namespace") : [];
}

function limitExpiration(
  spec: TokenRequestSpec,
  maxSeconds: number,
  warn: (texts: readonly string[]) => void,
): TokenRequestSpec {
  const { expirationSeconds = 0 } = spec;
  if (maxSeconds === 0 || expirationSeconds <= maxSeconds) return spec;
  warn([`requested expiration of ${expirationSeconds} seconds shortened to ${maxSeconds} seconds`]);
  return { ...spec, expirationSeconds: maxSeconds };
}

type BoundObjects = Pick<TokenClaims, "pod" | "node" | "secret">;

/** Gets the object that the token is bound to. Throws when it is missing, has another UID or another account. */
async function resolveBoundObject(
  registries: Registries,
  scope: Scope,
  account: ServiceAccount,
  reference: BoundObjectReference | undefined,
): Promise<BoundObjects> {
  if (reference === undefined) return {};
  const { apiVersion = "", kind = "", name = "", uid = "" } = reference;
  const { group, version } = parseApiVersion(apiVersion) ?? { group: "", version: apiVersion };
  if (group !== "" || !["Pod", "Node", "Secret"].includes(kind)) {
    throw badRequest(`cannot bind token to object of type ${group}/${version}, Kind=${kind}`);
  }
  if (name === "") throw badRequest("Name parameter required.");
  const found = await getBoundObject(registries, scope, account, kind, name);
  const actual = Object.values(found)[0]?.uid ?? "";
  if (uid === "" || uid === actual) return found;
  const differs = `the UID in the bound object reference (${uid}) does not match the UID in record`;
  const why = `${differs}. The object might have been deleted and then recreated`;
  throw conflict({ group, resource: kind, name }, why);
}

/** The referenced object is the first member of the result. */
async function getBoundObject(
  registries: Registries,
  scope: Scope,
  account: ServiceAccount,
  kind: string,
  name: string,
): Promise<BoundObjects> {
  const find = async <T extends ApiObject>(of: Kind<T>): Promise<T> => {
    return (await get(registries.of(of), { ...scope, namespace: of.namespaced ? scope.namespace : "" }, name)).object;
  };
  if (kind === "Node") return { node: referenceTo(await find(nodeKind)) };
  if (kind === "Secret") return { secret: referenceTo(await find(secretKind)) };
  const pod = await find(podKind);
  const owner = account.metadata?.name ?? "";
  if (pod.spec?.serviceAccountName !== owner) {
    const why = "to pod running with different serviceaccount name.";
    throw badRequest(`cannot bind token for serviceaccount ${goQuote(owner)} ${why}`);
  }
  return { pod: referenceTo(pod), ...(await podNode(registries, scope, pod)) };
}

/** The node of the pod; without UID when it does not exist any more. */
async function podNode(registries: Registries, scope: Scope, pod: Pod): Promise<Pick<BoundObjects, "node">> {
  const name = pod.spec?.nodeName ?? "";
  if (name === "") return {};
  try {
    return { node: referenceTo((await get(registries.of(nodeKind), { ...scope, namespace: "" }, name)).object) };
  } catch (error) {
    if (!(error instanceof StatusError) || error.status.code !== 404) throw error;
    return { node: { name } };
  }
}

function referenceTo(object: ApiObject): Reference {
  const { name = "", uid } = metadataOf(object);
  return { name, ...(uid === undefined ? {} : { uid }) };
}
