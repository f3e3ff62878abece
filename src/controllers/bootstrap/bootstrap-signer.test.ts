import t from "tap";
import { applySignatures } from "./bootstrap-signer.ts";

const joshua = { id: "joshua", secret: "my voice is my passcode", expiry: undefined };
const content = "Hello from the other side. I must have called a thousand times.";

t.test("applySignatures() signs as Kubernetes does, and removes signatures of deleted tokens", (t) => {
  const signed = applySignatures({ data: { kubeconfig: content, other: "stays", "jws-kubeconfig-gone00": "x" } }, [
    joshua,
  ]);
  const signature = "eyJhbGciOiJIUzI1NiIsImtpZCI6Impvc2h1YSJ9..VShe2taLd-YTrmWuRkcL_8QTNDHYxQIEBsAYYiIj1_8";
  t.same(signed?.data, { kubeconfig: content, other: "stays", "jws-kubeconfig-joshua": signature });
  t.equal(applySignatures(signed!, [joshua]), undefined, "up to date");
  const twice = [joshua, { ...joshua, secret: "another" }];
  t.equal(applySignatures(signed!, twice), undefined, "the first of two tokens with the same ID applies");
  t.same(applySignatures(signed!, [])?.data, { kubeconfig: content, other: "stays" });
  t.equal(applySignatures({ data: { other: "x" } }, [joshua]), undefined, "nothing to sign");
  t.end();
});
