/** Fuzzes the protobuf and envelope decoders: encoding a decoded value is stable. */

import { everything, fuzz, sample } from "../../testing/schema/fuzz-harness.ts";
import { encodeJson } from "../json/encode.ts";
import { decodeProtobuf } from "./decode.ts";
import { encodeProtobuf } from "./encode.ts";
import { decodeEnvelope, encodeEnvelope } from "./envelope.ts";
import { ProtobufError } from "./wire.ts";

const raw = encodeProtobuf(everything, sample);

fuzz({
  name: "protobuf",
  samples: [raw, encodeEnvelope("k8s", { apiVersion: "v1", kind: "Everything" }, raw)],
  words: [
    "k8s\0",
    "svc\0",
    "__proto__",
    Buffer.from([0x7a, 0x02, 0x7a, 0x00]),
    Buffer.from([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]),
    Buffer.from([0x0b]),
    Buffer.from([0x00]),
    Buffer.from([0x3a, 0x04, 0x0a, 0x00, 0x12, 0x00]),
    Buffer.from([0x52, 0x0b, 0x08, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01]),
  ],
  read(input) {
    const framed = input[3] === 0 && input[0] !== 0;
    const value = decodeProtobuf(everything, framed ? decodeEnvelope(input).raw : input);
    encodeJson(everything, value);
    const first = encodeProtobuf(everything, value);
    const second = encodeProtobuf(everything, decodeProtobuf(everything, first));
    if (Buffer.compare(first, second) !== 0) throw new Error("what was written reads otherwise");
    return value;
  },
  isRefusal: (error) => error instanceof ProtobufError,
});
