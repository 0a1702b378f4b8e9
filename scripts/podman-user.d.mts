// scripts/podman-user.d.mts: the types of podman-user.mjs, for the tests.
export interface PodmanUser extends Disposable {
  readonly uid: number;
  readonly userName: string;
  readonly home: string;
  readonly env: Readonly<Record<string, string>>;
}
export function createUser(name: string): PodmanUser;
