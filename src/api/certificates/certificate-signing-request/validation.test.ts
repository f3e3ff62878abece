import t from "tap";
import { certificateSigningRequestKind } from "./kind.ts";
import type { CertificateSigningRequest } from "./schema.ts";
import { validateSignerName } from "./signer-name.ts";
import { validateRequest, validateStatus } from "./validation.ts";

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

t.test("validateSignerName() counts bytes", async (t) => {
  const labels = (count: number, last: string) => [...Array<string>(count).fill("x".repeat(63)), last].join(".");
  const types = (text: string) => validateSignerName(text, "p").map(({ type }) => type);
  // A domain of 253 bytes, and the longest name: a namespace and a name of an object.
  const domain = labels(3, "x".repeat(61));
  t.same(types(`${domain}/${labels(4, "x".repeat(61))}`), []);
  t.same(types(`${domain}/${labels(4, "x".repeat(62))}`), ["FieldValueTooLong"]);
  t.same(types(`${labels(3, "x".repeat(62))}/a`), ["FieldValueTooLong"]);
  t.same(types(`${"é".repeat(127)}.x/a`), ["FieldValueTooLong", "FieldValueInvalid", "FieldValueInvalid"]);
});

t.test("all unknown usages are reported before the repeated ones", async (t) => {
  const usages = ["a", "client auth", "client auth", "a"];
  const found = validateRequest({ spec: { request: "", signerName: "a.b/c", usages: usages as never } });
  t.match(
    found.slice(1).map(({ type, field }) => `${type} ${field}`),
    [
      "FieldValueNotSupported spec.usages[0]",
      "FieldValueNotSupported spec.usages[3]",
      "FieldValueDuplicate spec.usages[2]",
      "FieldValueDuplicate spec.usages[3]",
    ],
  );
});

t.test("errors of the certificate's content precede those of conditions, and its ban follows them", async (t) => {
  const permissions = { mayApprove: false, mayIssue: false };
  const issued = (certificate: string): CertificateSigningRequest => ({
    spec,
    status: {
      certificate: Buffer.from(certificate).toString("base64"),
      conditions: withTypes("Approved").status!.conditions,
    },
  });
  const details = (certificate: string) =>
    validateStatus(issued(certificate), withTypes("Failed"), permissions).map(({ detail }) => detail);
  t.same(details("x"), [
    "must contain at least one CERTIFICATE PEM block",
    'updates may not remove a condition of type "Failed"',
    'updates may not add a condition of type "Approved"',
    "updates may not set certificate content",
  ]);
  const empty = "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n";
  t.equal(details(empty)[0], "found CERTIFICATE PEM block containing 0 certificates");
});
