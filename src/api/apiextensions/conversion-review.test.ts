import t from "tap";
import { decode } from "../../schema/decode/decode.ts";
import { encodeJson } from "../../schema/json/encode.ts";
import { parseJson } from "../../schema/json/parse.ts";
import { conversionReview } from "./conversion-review.ts";

const about = { kind: "ConversionReview", apiVersion: "apiextensions.k8s.io/v1" };
const object = {
  apiVersion: "stable.example.com/v2",
  kind: "CronTab",
  metadata: { name: "night" },
  spec: { any: [1] },
};

t.test("conversionReview preserves the nested objects", (t) => {
  const request = { ...about, request: { uid: "u", desiredAPIVersion: "stable.example.com/v2", objects: [object] } };
  const response = { ...about, response: { uid: "u", convertedObjects: [object], result: { status: "Success" } } };
  for (const review of [request, response]) {
    const { value, errors } = decode(conversionReview, review);
    t.same(errors, []);
    t.match(parseJson(encodeJson(conversionReview, value)).value, review);
  }
  t.end();
});

t.test("conversionReview reports errors of a response", (t) => {
  const { errors } = decode(conversionReview, { ...about, response: { uid: 5, convertedObjects: object } });
  t.ok(errors.length > 0);
  t.end();
});
