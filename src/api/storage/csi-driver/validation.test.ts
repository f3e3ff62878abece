import t from "tap";
import { validateVolumeAttachment } from "../volume-attachment/validation.ts";
import { validateCSIDriverSpec } from "./validation.ts";

const driver = { attachRequired: true, podInfoOnMount: false, storageCapacity: false, seLinuxMount: false };

t.test("the allocatable count of nodes is updated every ten seconds at most", async (t) => {
  const errors = (nodeAllocatableUpdatePeriodSeconds: number) =>
    validateCSIDriverSpec({ ...driver, nodeAllocatableUpdatePeriodSeconds });
  t.same(errors(10), []);
  t.match(errors(9), [
    { field: "spec.nodeAllocatableUpdatePeriodSeconds", detail: "must be greater than or equal to 10 seconds" },
  ]);
});

t.test("the errors of an attachment have a code and a message of 1024 bytes", async (t) => {
  const errors = (attachError: object) =>
    validateVolumeAttachment({
      spec: { attacher: "csi.example.com", nodeName: "n", source: { persistentVolumeName: "v" } },
      status: { attached: false, attachError },
    }).map(({ field, detail }) => [field, detail]);
  t.same(errors({ errorCode: 8, message: "é".repeat(512) }), []);
  t.same(errors({ errorCode: -1, message: "é".repeat(513) }), [
    ["status.attachError.message", "may not be more than 262144 bytes"],
    ["status.attachError.errorCode", "must be between 0 and 2147483647, inclusive"],
  ]);
});
