// cli/verbs/devcontainer.ts: `ags devcontainer init`.
import { AgsError, EXIT } from '../../protocol/errors.ts';
import type { Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'write a .devcontainer for editors, with the rules of a sandbox',
  usage: 'devcontainer init [--service <name,...>] [--docker] [--force]',
  takes: 1,
  about:
    'Visual Studio Code, JetBrains and @devcontainers/cli open the project in a container without root, capabilities or network. The gateway lets through the hosts in .devcontainer/allow-list.txt, which ags generates from the rules of this project. The container uses your own directory, not a copy: for work that you want to review first, use a task.',
  examples: [
    'ags devcontainer init',
    'ags devcontainer init --service postgres,redis',
    'ags devcontainer init --docker',
    'ags devcontainer init --force',
    'devcontainer up --workspace-folder .',
  ],
  options: {
    service: {
      type: 'string',
      multiple: true,
      value: 'name,...',
      about: 'add this service to those in "services:"; postgres, mariadb, redis, valkey',
    },
    docker: { type: 'boolean', about: 'add a private Docker daemon, even if "docker:" is not set' },
    force: { type: 'boolean', about: 'replace existing files' },
    json: { type: 'boolean', about: 'print one JSON document' },
  },
  async run({ values, positionals }, ctx) {
    if (positionals.length !== 1 || positionals[0] !== 'init')
      throw new AgsError('usage.invalid', 'ags devcontainer takes one word: init.', {
        hint: 'For example: ags devcontainer init --service postgres',
      });
    const [{ initDevContainer }, { readVersion }] = await Promise.all([
      import('../../images/devcontainer/devcontainer.ts'),
      import('../../lib/package-file.ts'),
    ]);
    const services = Array.isArray(values['service']) ? values['service'].flatMap((one) => one.split(',')) : [];
    const written = await initDevContainer(ctx.host, {
      services,
      docker: values['docker'] === true,
      force: values['force'] === true,
      agsPackage: `@ags/cli@${readVersion()}`,
    });
    if (values['json'] === true) ctx.stdout.write(`${JSON.stringify(written, null, 2)}\n`);
    else {
      ctx.stdout.write(written.files.map((file) => `${file}\n`).join(''));
      for (const one of written.leftOut) ctx.stderr.write(`ags: left out: ${one}\n`);
      if (written.docker !== null) ctx.stderr.write(`ags: docker: ${written.docker}.\n`);
      ctx.stderr.write('ags: Open the project in your editor, or: devcontainer up --workspace-folder .\n');
    }
    return EXIT.done;
  },
};
export default verb;
