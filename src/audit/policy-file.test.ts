import t from "tap";
import { readAuditPolicy } from "./policy-file.ts";

const HEAD = "apiVersion: audit.k8s.io/v1\nkind: Policy\n";
const META = "couldn't get version/kind; json parse error: ";
const STRUCT =
  'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }';
const NUMBER = "failed decoding: json: cannot unmarshal number into Go struct field ";
const SCHEME = 'in scheme "pkg/audit/scheme.go:30"';

t.test("invalid policy files have the errors of Kubernetes", async (t) => {
  const cases: readonly [string, string][] = [
    ["- a", `failed decoding: ${META}json: cannot unmarshal array into Go value of type ${STRUCT}`],
    ['"x"', `failed decoding: ${META}json: cannot unmarshal string into Go value of type ${STRUCT}`],
    ["kind: 1\n", `failed decoding: ${META}json: cannot unmarshal number into Go struct field .kind of type string`],
    ['{"kind":"Policy"', `failed decoding: ${META}unexpected end of JSON input`],
    ["null", "unknown group version field audit.k8s.io/__internal, Kind=Policy in policy"],
    ["kind: Policy\n", "unknown group version field audit.k8s.io/__internal, Kind=Policy in policy"],
    ["apiVersion: audit.k8s.io/v1\n", "loaded illegal policy with 0 rules"],
    [
      "apiVersion: audit.k8s.io/v2\n",
      `failed decoding: no kind "Policy" is registered for version "audit.k8s.io/v2" ${SCHEME}`,
    ],
    ["apiVersion: v1\nkind: Foo\n", `failed decoding: no kind "Foo" is registered for version "v1" ${SCHEME}`],
    [`${HEAD}rules:\n- level: 1\n`, `${NUMBER}PolicyRule.rules.level of type v1.Level`],
    [`${HEAD}rules:\n- level: None\n  omitStages: [1]\n`, `${NUMBER}PolicyRule.rules.omitStages of type v1.Stage`],
  ];
  for (const [text, message] of cases) {
    const whole = `loading audit policy file: ${message}: from file policy`;
    t.throws(() => readAuditPolicy("policy", text), { message: whole }, text);
  }
});
