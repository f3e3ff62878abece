import t from "tap";
import { signedWith } from "./bootstrap-signer.ts";

const joshua = { id: "joshua", secret: "my voice is my passcode", expiry: undefined };
const content = "Hello from the other side. I must have called a thousand times.";

t.test("signedWith() signs as Kubernetes' tools verify it, and takes away what nobody has signed", (t) => {
  const signed = signedWith({ data: { kubeconfig: content, other: "stays", "jws-kubeconfig-gone00": "x" } }, [joshua]);
  const signature = "eyJhbGciOiJIUzI1NiIsImtpZCI6Impvc2h1YSJ9..VShe2taLd-YTrmWuRkcL_8QTNDHYxQIEBsAYYiIj1_8";
  t.same(signed?.data, { kubeconfig: content, other: "stays", "jws-kubeconfig-joshua": signature });
  t.equal(signedWith(signed!, [joshua]), undefined, "as it is to be");
  const twice = [joshua, { ...joshua, secret: "another" }];
  t.equal(signedWith(signed!, twice), undefined, "the first of two with one id counts");
  t.same(signedWith(signed!, [])?.data, { kubeconfig: content, other: "stays" });
  t.equal(signedWith({ data: { other: "x" } }, [joshua]), undefined, "there is nothing to sign");
  t.end();
});
