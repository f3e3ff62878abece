import t from "tap";
import { decodeEnvelope, encodeEnvelope } from "./envelope.ts";
import { ProtobufError } from "./wire.ts";

const type = { apiVersion: "v1", kind: "Pod" };

t.test("decodeEnvelope() inverts encodeEnvelope() for both magic numbers", async (t) => {
  for (const magic of ["k8s", "svc"] as const) {
    const bytes = encodeEnvelope(magic, type, Buffer.from("raw"));
    t.equal(bytes.subarray(0, 4).toString("latin1"), `${magic}\0`);
    const envelope = decodeEnvelope(bytes);
    t.match(envelope, { magic, ...type, contentType: "" });
    t.equal(Buffer.from(envelope.raw).toString(), "raw");
  }
});

t.test("decodeEnvelope() rejects other bytes", async (t) => {
  const bytes = encodeEnvelope("k8s", type, Buffer.from("raw"));
  t.throws(() => decodeEnvelope(Buffer.from("{}")), ProtobufError);
  t.throws(() => decodeEnvelope(Buffer.alloc(0)), ProtobufError);
  t.throws(() => decodeEnvelope(bytes.subarray(0, bytes.length - 6)), ProtobufError);
  t.throws(() => decodeEnvelope(Buffer.from("k8s\0\0\0")), /illegal tag 0/);
  t.same(decodeEnvelope(bytes.subarray(0, 4)).kind, "", "an empty envelope has no kind");
});
