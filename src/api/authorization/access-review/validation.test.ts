import t from "tap";
import type { ResourceAttributes, SubjectAccessReviewSpec } from "./schema.ts";
import { validateLocalAccess, validateSelfAccess, validateSubjectAccess } from "./validation.ts";

const shown = (errors: ReturnType<typeof validateSelfAccess>): readonly string[] =>
  errors.map(({ field, type }) => `${field.replace("spec.resourceAttributes", "…")} ${type}`);

const attributes = { verb: "list", resource: "pods" };
const In = { key: "a", operator: "In", values: ["b"] };
const selectors: readonly (readonly [ResourceAttributes, readonly string[]])[] = [
  [{ fieldSelector: {} }, ["….fieldSelector.requirements FieldValueRequired"]],
  [{ labelSelector: { rawSelector: "!!" } }, []],
  // Each requirement is validated also beside a text.
  [
    { fieldSelector: { rawSelector: "a=b", requirements: [{ key: "", operator: "In" }] } },
    [
      "….fieldSelector.rawSelector FieldValueInvalid",
      "….fieldSelector.requirements[0].key FieldValueRequired",
      "….fieldSelector.requirements[0].values FieldValueRequired",
    ],
  ],
  [
    { fieldSelector: { requirements: [{ key: "a", operator: "Exists", values: ["b"] }] } },
    ["….fieldSelector.requirements[0].values FieldValueForbidden"],
  ],
  // Operators of newer clients.
  [{ fieldSelector: { requirements: [{ key: "a", operator: "Near", values: ["b"] }] } }, []],
  [{ labelSelector: { requirements: [{ key: "a", operator: "Near" }] } }, []],
  [
    { labelSelector: { requirements: [{ key: "a b", operator: "Near", values: ["c d"] }] } },
    [
      "….labelSelector.requirements[0].key FieldValueInvalid",
      "….labelSelector.requirements[0].values[0] FieldValueInvalid",
    ],
  ],
  [
    { fieldSelector: {}, labelSelector: { rawSelector: "a", requirements: [In] } },
    ["….fieldSelector.requirements FieldValueRequired", "….labelSelector.rawSelector FieldValueInvalid"],
  ],
];

t.test("selectors of reviews are validated as in Kubernetes, which accepts unknown operators", async (t) => {
  for (const [more, expected] of selectors) {
    const spec = { resourceAttributes: { ...attributes, ...more } };
    t.same(shown(validateSelfAccess({ spec })), expected, JSON.stringify(more));
  }
});

t.test("the errors of a review are in Kubernetes' order: attributes, user, selectors, namespace", async (t) => {
  const spec: SubjectAccessReviewSpec = {
    resourceAttributes: { ...attributes, fieldSelector: {} },
    nonResourceAttributes: { path: "/x", verb: "get" },
  };
  const expected = [
    "spec.nonResourceAttributes FieldValueInvalid",
    "spec.user FieldValueInvalid",
    "….fieldSelector.requirements FieldValueRequired",
  ];
  t.same(shown(validateSubjectAccess({ spec })), expected);
  t.same(shown(validateLocalAccess({ metadata: { namespace: "x" }, spec })), [
    ...expected,
    "….namespace FieldValueInvalid",
    "spec.nonResourceAttributes FieldValueInvalid",
  ]);
  t.same(shown(validateSubjectAccess({ spec: {} })), ["… FieldValueInvalid", "spec.user FieldValueInvalid"]);
});
