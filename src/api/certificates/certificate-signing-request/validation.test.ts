import t from "tap";
import { certificateSigningRequestKind } from "./kind.ts";
import type { CertificateSigningRequest } from "./schema.ts";
import { validateSignerName } from "./signer-name.ts";

const spec = { request: "", signerName: "a.b/c" };
const NOW = "2026-01-02T00:00:00Z";
const [approval, status] = certificateSigningRequestKind.subresources.map(({ strategy: part }) => part!);

function withTypes(...types: readonly string[]): CertificateSigningRequest {
  const lastTransitionTime = "2026-01-01T00:00:00Z";
  return { spec, status: { conditions: types.map((type) => ({ type, status: "True", lastTransitionTime })) } };
}

t.test(
  "the approval subresource may approve but not issue, the status subresource may issue but not approve",
  async (t) => {
    const bare: CertificateSigningRequest = { spec };
    const approve = approval!.prepareForUpdate(
      { spec, status: { conditions: [{ type: "Approved", status: "True" }] } },
      bare,
      NOW,
    );
    const condition = { type: "Approved", status: "True", lastUpdateTime: NOW, lastTransitionTime: NOW };
    t.same(approve.status, { conditions: [condition] });
    t.same(approval!.validateUpdate?.(approve, bare), []);
    const wrong = status!.validateUpdate?.(approve, bare) ?? [];
    t.match(wrong[0], { detail: 'updates may not add a condition of type "Approved"' });
    const removed = approval!.validateUpdate?.(bare, withTypes("Denied")) ?? [];
    t.match(removed[0], { detail: 'updates may not remove a condition of type "Denied"' });
    const issued = { spec, status: { certificate: "eA==" } };
    t.same(approval!.prepareForUpdate(issued, bare, NOW).status?.certificate, undefined);
    t.equal(status!.prepareForUpdate(issued, bare, NOW).status?.certificate, "eA==");
  },
);

t.test("a status update keeps approval conditions and the times of unchanged conditions", async (t) => {
  const previous = withTypes("Approved", "Ready");
  const sent = {
    spec,
    status: {
      conditions: [
        { type: "Ready", status: "True" },
        { type: "Approved", status: "False" },
      ],
    },
  };
  const next = status!.prepareForUpdate(sent, previous, NOW);
  t.match(next.status?.conditions, [
    { type: "Ready", lastTransitionTime: "2026-01-01T00:00:00Z", lastUpdateTime: NOW },
    { type: "Approved", status: "True" },
  ]);
});

t.test("validateSignerName() requires a domain and a name", async (t) => {
  const cases: readonly (readonly [text: string, problem: RegExp | undefined])[] = [
    ["kubernetes.io/kube-apiserver-client", undefined],
    ["a.b/c.d", undefined],
    ["", /^$/],
    ["abc", /must be a fully qualified domain and path/],
    ["a.b/c/d", /must be a fully qualified domain and path/],
    ["a/c", /at least two segments/],
    ["A.b/c", /validating label "A"/],
    ["a.b/C", /validating label "C"/],
  ];
  for (const [text, problem] of cases) {
    const [error] = validateSignerName(text, "spec.signerName");
    if (problem === undefined) t.equal(error, undefined, text);
    else t.match(error?.detail, problem, text);
  }
});
