// git/user-settings.ts: the user's own git settings, for programs that the user chose: a pager, a diff tool.
// Invariant: no setting of any repository counts, so nothing that came with a project can name a program.
import { userGit } from './host-git.ts';
import { parseConfig } from './inspect.ts';

export async function userSettings(user: {
  readonly home: string;
  readonly configHome: string | undefined;
}): Promise<ReadonlyMap<string, string>> {
  const read = async (scope: string): Promise<[string, string][]> => {
    const listed = await userGit(['config', scope, '--list', '-z', '--includes'], { ...user, cwd: '/' });
    // git fails if there is no such file.
    return listed.exitCode === 0 ? [...parseConfig(listed.stdout)] : [];
  };
  return new Map([...(await read('--system')), ...(await read('--global'))]);
}
