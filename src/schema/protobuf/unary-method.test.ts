import t from "tap";
import { message, optional, string } from "../define.ts";
import { defineUnaryMethod } from "./unary-method.ts";

t.test("defineUnaryMethod() decodes what it encodes, for requests and responses", (t) => {
  const request = message("test.Request", { name: optional(1, string) });
  const response = message("test.Answer", { text: optional(2, string) });
  const method = defineUnaryMethod("/test.Test/Get", request, response);
  t.match(method, { path: "/test.Test/Get", requestStream: false, responseStream: false });
  t.same(method.requestDeserialize(method.requestSerialize({ name: "a" })), { name: "a" });
  t.same(method.responseDeserialize(method.responseSerialize({ text: "b" })), { text: "b" });
  t.end();
});
