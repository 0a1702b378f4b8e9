// git/clone.ts: clones a repository for the user, with the user's settings and credentials: the only use of git with the network.
// Invariant: only protocols that name no command are allowed, git never prompts without a terminal, and no template hook runs.
import { spawn } from 'node:child_process';
import { withStreams } from '../lib/process/process.ts';

export function cloneWithUserGit(wanted: {
  url: string;
  to: string;
  env: Readonly<Record<string, string | undefined>>;
  signal: AbortSignal;
  onProgress(line: string): void;
}): Promise<{ exitCode: number; said: string }> {
  const args = ['-c', 'core.hooksPath=/dev/null', '-c', 'core.fsmonitor=false', 'clone', '--progress', '--template='];
  return new Promise((resolve) => {
    const child = withStreams(
      spawn('git', [...args, '--', wanted.url, wanted.to], {
        cwd: '/',
        env: {
          ...wanted.env,
          GIT_TERMINAL_PROMPT: '0',
          GIT_ALLOW_PROTOCOL: 'https:ssh:git:file',
          GIT_SSH_COMMAND: wanted.env['GIT_SSH_COMMAND'] ?? 'ssh -o BatchMode=yes',
          LC_ALL: 'C',
        },
        stdio: ['ignore', 'ignore', 'pipe'],
      }),
    );
    const stop = (): void => void child.kill('SIGTERM');
    wanted.signal.addEventListener('abort', stop);
    let held = '';
    let said = '';
    child.stderr.on('data', (chunk: Buffer) => {
      const lines = (held + chunk.toString('utf8')).split(/[\r\n]/);
      held = (lines.pop() ?? '').slice(-1000);
      for (const line of lines.filter((one) => one.trim() !== '')) {
        if (/^(fatal|error|remote: error)/i.test(line.trim())) said = `${said} ${line.trim()}`.trim().slice(0, 1000);
        wanted.onProgress(line.trim().slice(0, 200));
      }
    });
    const end = (exitCode: number, text: string): void => {
      wanted.signal.removeEventListener('abort', stop);
      resolve({ exitCode, said: text });
    };
    child.on('error', (error) => end(127, error.message));
    child.on('close', (code) => end(code ?? 128, said || held.trim() || 'git ended early'));
  });
}
