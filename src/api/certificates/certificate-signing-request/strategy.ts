import type { Requester, Strategy, Subresource } from "../../kind.ts";
import { dropStatus, keepStatus, statusSubresource } from "../../strategy.ts";
import type { CertificateSigningRequest, CertificateSigningRequestCondition } from "./schema.ts";
import { validateRequest, validateStatus } from "./validation.ts";

/** The spec is immutable: another certificate needs another request. */
export const certificateSigningRequestStrategy: Strategy<CertificateSigningRequest> = {
  prepareForCreate: (object, _now, requester = UNKNOWN_REQUESTER) => setRequester(dropStatus(object), requester),
  prepareForUpdate: (next, previous) => ({ ...keepStatus(next, previous), spec: previous.spec }),
  validate: (object, previous) => (previous === undefined ? validateRequest(object) : []),
  resetFields: [["spec"], ["status"]],
};

const UNKNOWN_REQUESTER: Requester = { name: "", uid: "", groups: [], extra: {} };

/** Sets the user of the request, which approvers depend on. */
export function setRequester(
  object: CertificateSigningRequest,
  { name, uid, groups, extra }: Requester,
): CertificateSigningRequest {
  const { username: _, uid: __, groups: ___, extra: ____, ...requested } = object.spec;
  const requester = {
    username: name,
    ...(uid === "" ? {} : { uid }),
    ...(groups.length === 0 ? {} : { groups }),
    ...(Object.keys(extra).length === 0 ? {} : { extra }),
  };
  return { ...object, spec: { ...requested, ...requester } };
}

type Conditions = readonly CertificateSigningRequestCondition[];

function setConditions(object: CertificateSigningRequest, conditions: Conditions): CertificateSigningRequest {
  const { conditions: _, ...status } = object.status ?? {};
  return { ...object, status: conditions.length === 0 ? status : { ...status, conditions } };
}

/** Sets the times of conditions; unchanged conditions keep theirs. */
function setConditionTimes(conditions: Conditions, before: Conditions, now: string): Conditions {
  const keyOf = ({ type, status }: CertificateSigningRequestCondition): string => JSON.stringify([type, status]);
  // Of equal conditions the first counts.
  const olds = new Map([...before].reverse().map((old) => [keyOf(old), old]));
  return conditions.map((condition) => {
    const { lastUpdateTime = now } = condition;
    const same = olds.get(keyOf(condition));
    const lastTransitionTime = condition.lastTransitionTime ?? same?.lastTransitionTime ?? now;
    return { ...condition, lastUpdateTime, lastTransitionTime };
  });
}

export const approval: Subresource<CertificateSigningRequest> = {
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

/** Signers update the status; the approval conditions keep their previous state. */
export const statusSubresourceOfRequest = statusSubresource<CertificateSigningRequest>("CertificateSigningRequest", {
  prepareForUpdate: (next, previous, now) => {
    const before = previous.status?.conditions ?? [];
    const sent = next.status?.conditions ?? [];
    const [sentByType, oldByType] = [sent, before].map((list) => Map.groupBy(list, ({ type }) => type));
    const positions = new Map<string, number>();
    const kept = sent.map((condition) => {
      const { type } = condition;
      const position = positions.get(type) ?? 0;
      positions.set(type, position + 1);
      const old = oldByType?.get(type) ?? [];
      const decision = (type === "Approved" || type === "Denied") && sentByType?.get(type)?.length === old.length;
      return decision ? (old[position] ?? condition) : condition;
    });
    return setConditions({ ...next, spec: previous.spec }, setConditionTimes(kept, before, now));
  },
  validateUpdate: (next, previous) => validateStatus(next, previous, { mayApprove: false, mayIssue: true }),
  resetFields: [["spec"], ["status", "conditions"]],
});
