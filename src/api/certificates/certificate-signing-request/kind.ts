import { ageColumn, column, nameColumn } from "../../columns/columns.ts";
import { humanDuration } from "../../columns/human-duration.ts";
import { allVerbs, type Kind, type Requester, type Strategy, type Subresource } from "../../kind.ts";
import { pathSegment } from "../../meta/validation/names.ts";
import { dropStatus, keepStatus, statusSubresource } from "../../strategy.ts";
import {
  type CertificateSigningRequest,
  type CertificateSigningRequestCondition,
  certificateSigningRequest,
} from "./schema.ts";
import { validateRequest, validateStatus } from "./validation.ts";

/** Requests are made once: who wants another certificate asks for it anew. */
const certificateSigningRequestStrategy: Strategy<CertificateSigningRequest> = {
  prepareForCreate: (object, _now, requester = NOBODY) => setRequester(dropStatus(object), requester),
  prepareForUpdate: (next, previous) => ({ ...keepStatus(next, previous), spec: previous.spec }),
  validate: (object, previous) => (previous === undefined ? validateRequest(object) : []),
  resetFields: [["spec"], ["status"]],
};

const NOBODY: Requester = { name: "", uid: "", groups: [], extra: {} };

/** Writes into a request who asks: whoever approves it has to know. */
export function setRequester(
  object: CertificateSigningRequest,
  { name, uid, groups, extra }: Requester,
): CertificateSigningRequest {
  const { username: _, uid: __, groups: ___, extra: ____, ...asked } = object.spec;
  const requester = {
    username: name,
    ...(uid === "" ? {} : { uid }),
    ...(groups.length === 0 ? {} : { groups }),
    ...(Object.keys(extra).length === 0 ? {} : { extra }),
  };
  return { ...object, spec: { ...asked, ...requester } };
}

type Conditions = readonly CertificateSigningRequestCondition[];

function setConditions(object: CertificateSigningRequest, conditions: Conditions): CertificateSigningRequest {
  const { conditions: _, ...status } = object.status ?? {};
  return { ...object, status: conditions.length === 0 ? status : { ...status, conditions } };
}

/** Conditions say since when they hold; what held before holds since then. */
function setConditionTimes(conditions: Conditions, before: Conditions, now: string): Conditions {
  return conditions.map((condition) => {
    const { type, status, lastUpdateTime = now } = condition;
    const same = before.find((old) => old.type === type && old.status === status);
    const lastTransitionTime = condition.lastTransitionTime ?? same?.lastTransitionTime ?? now;
    return { ...condition, lastUpdateTime, lastTransitionTime };
  });
}

const approval: Subresource<CertificateSigningRequest> = {
  name: "approval",
  kind: "CertificateSigningRequest",
  verbs: ["get", "patch", "update"],
  strategy: {
    prepareForUpdate: (next, previous, now) => {
      const before = previous.status?.conditions ?? [];
      const kept = { ...keepStatus(next, previous), spec: previous.spec };
      return setConditions(kept, setConditionTimes(next.status?.conditions ?? [], before, now));
    },
    validateUpdate: (next, previous) => validateStatus(next, previous, { mayApprove: true, mayIssue: false }),
    resetFields: [["spec"], ["status", "certificate"]],
  },
};

/** Signers write the status: decisions are others', and stay as they were. */
const statusSubresourceOfRequest = statusSubresource<CertificateSigningRequest>("CertificateSigningRequest", {
  prepareForUpdate: (next, previous, now) => {
    const before = previous.status?.conditions ?? [];
    const ofType = (list: Conditions, wanted: string): Conditions => list.filter(({ type }) => type === wanted);
    const sent = next.status?.conditions ?? [];
    const kept = sent.map((condition) => {
      const { type } = condition;
      const [now, old] = [ofType(sent, type), ofType(before, type)];
      const decision = (type === "Approved" || type === "Denied") && now.length === old.length;
      return decision ? (old[now.indexOf(condition)] ?? condition) : condition;
    });
    return setConditions({ ...next, spec: previous.spec }, setConditionTimes(kept, before, now));
  },
  validateUpdate: (next, previous) => validateStatus(next, previous, { mayApprove: false, mayIssue: true }),
  resetFields: [["spec"], ["status", "conditions"]],
});

/** `Approved,Issued` */
function conditionText(object: CertificateSigningRequest): string {
  const types = new Set((object.status?.conditions ?? []).map(({ type }) => type));
  const decided = types.has("Denied") ? "Denied" : types.has("Approved") ? "Approved" : "Pending";
  return [decided, ...(types.has("Failed") ? ["Failed"] : []), ...(object.status?.certificate ? ["Issued"] : [])].join(
    ",",
  );
}

export const certificateSigningRequestKind: Kind<CertificateSigningRequest> = {
  group: "certificates.svc.io",
  version: "v1",
  kind: "CertificateSigningRequest",
  listKind: "CertificateSigningRequestList",
  plural: "certificatesigningrequests",
  singular: "certificatesigningrequest",
  shortNames: ["csr"],
  categories: [],
  namespaced: false,
  verbs: allVerbs,
  subresources: [approval, statusSubresourceOfRequest],
  storageName: "certificatesigningrequests",
  schema: certificateSigningRequest,
  nameFormat: pathSegment,
  columns: [
    nameColumn,
    ageColumn,
    column("SignerName", ({ spec }) => spec.signerName || "<none>", "Who is asked to sign."),
    column("Requestor", ({ spec }) => spec.username ?? "", "Who asks."),
    column(
      "RequestedDuration",
      ({ spec }) => (spec.expirationSeconds === undefined ? "<none>" : humanDuration(spec.expirationSeconds * 1000)),
      "How long the certificate is to hold.",
    ),
    column("Condition", conditionText, "What has become of it."),
  ],
  selectableFields: { "spec.signerName": ({ spec }) => spec.signerName },
  strategy: certificateSigningRequestStrategy,
};
