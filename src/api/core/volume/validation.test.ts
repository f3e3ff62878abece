import t from "tap";
import type { Volume, VolumeSource } from "./schema.ts";
import { validateVolumes } from "./validation.ts";

const errors = (source: VolumeSource, pod = "web"): readonly string[] =>
  validateVolumes([{ name: "v", ...source }], "volumes", pod).errors.map(
    ({ type, field, detail }) => `${type.replace("FieldValue", "")} ${field}: ${detail}`,
  );
const ONE = "may not specify more than 1 volume type";
const LONG =
  "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.";

t.test("errors of volume sources have Kubernetes' paths and texts", async (t) => {
  const iscsi = { targetPortal: "p".repeat(63), iqn: "iqn.2020-01.com.x:y", lun: 0, initiatorName: "iqn.2020-01.a:b" };
  const image = { reference: "", pullPolicy: "IfNotPresent" } as const;
  const quobyte = { registry: "r:1", volume: "v" };
  type Case = readonly [what: string, source: VolumeSource, expected: readonly string[], pod?: string];
  const cases: readonly Case[] = [
    [
      "second sources",
      { emptyDir: {}, cephfs: { monitors: ["m"] }, downwardAPI: {} },
      [`Forbidden volumes[0].cephFS: ${ONE}`, `Forbidden volumes[0].downwarAPI: ${ONE}`],
    ],
    ["iSCSI", { iscsi }, [`Invalid volumes[0].name: ${LONG}`]],
    [
      "iSCSI as second source",
      { emptyDir: {}, iscsi },
      [`Forbidden volumes[0].iscsi: ${ONE}`, `Invalid volumes[0].name: ${LONG}`],
    ],
    ["an image in a pod", { image }, ["Required volumes[0].image.reference: "]],
    ["an image in a template", { image }, [], ""],
    [
      "the pull policy of an image",
      { image: { reference: "i", pullPolicy: "Sometimes" as "Always" } },
      ['NotSupported volumes[0].image.pullPolicy: supported values: "Always", "IfNotPresent", "Never"'],
    ],
    [
      "a tenant of 66 bytes",
      { quobyte: { ...quobyte, tenant: "\u00e9".repeat(33) } },
      ["Required volumes[0].quobyte.tenant: must be a UUID and may not exceed a length of 64 characters"],
    ],
    ["a tenant of 64 bytes", { quobyte: { ...quobyte, tenant: "\u00e9".repeat(32) } }, []],
  ];
  for (const [what, source, expected, pod] of cases) t.same(errors(source, pod), expected, what);
  const csi = { driver: "d", nodePublishSecretRef: { name: "A" } };
  t.match(errors({ csi }), [/^Invalid volumes\[0\]\.csi\.name: a lowercase RFC 1123 subdomain/]);
  t.same(errors({ csi: { ...csi, nodePublishSecretRef: {} } }), [
    "Required volumes[0].csi.nodePublishSecretRef.name: ",
  ]);
});

type Sources = NonNullable<NonNullable<Volume["projected"]>["sources"]>;

t.test("projected files have paths that no other source uses", async (t) => {
  const path = "volumes[0].projected";
  const bundle = `${path}.sources[0].clusterTrustBundle`;
  const duplicate = `Invalid ${path}: conflicting duplicate paths`;
  const item = { key: "k", path: "p" };
  const cases: readonly (readonly [source: Sources, expected: readonly string[]])[] = [
    [[{ secret: { name: "s", items: [item, item] } }], [duplicate]],
    [[{ secret: { name: "s", items: [item] } }, { clusterTrustBundle: { name: "b", path: "p" } }], [duplicate]],
    [
      [{ secret: { items: [item, { key: "", path: "p" }] } }],
      [`Required ${path}.sources[0].secret.name: `, `Required ${path}.sources[0].secret.items[1].key: `, duplicate],
    ],
    [
      [{ clusterTrustBundle: { name: "b", signerName: "x.y/z", path: "p" } }],
      [`Invalid ${bundle}: only one of name and signerName may be used`],
    ],
    [
      [{ clusterTrustBundle: { path: "" } }],
      [`Required ${bundle}: either name or signerName must be specified`, `Required ${bundle}.path: `],
    ],
    [
      [{ clusterTrustBundle: { name: "x.y:z:b", labelSelector: {}, path: "../p" } }],
      [
        `Invalid ${bundle}.labelSelector: labelSelector must be unset if name is specified`,
        `Invalid ${bundle}.path: must not contain '..'`,
      ],
    ],
    [
      [{ clusterTrustBundle: { signerName: "", path: "p" } }],
      [`Required ${bundle}.signerName: must be a valid signer name`, `Required ${bundle}.signerName: `],
    ],
    [[{ clusterTrustBundle: { signerName: "x.y/z", path: "p" } }], []],
  ];
  for (const [sources, expected] of cases) t.same(errors({ projected: { sources } }), expected);
  t.match(errors({ projected: { sources: [{ clusterTrustBundle: { name: "A", path: "p" } }] } }), [
    /clusterTrustBundle\.name: not a valid clustertrustbundlename: a lowercase RFC 1123 subdomain/,
  ]);
});
