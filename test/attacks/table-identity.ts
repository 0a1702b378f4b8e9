// test/attacks/table-identity.ts: attempts to learn what the caller has: variables, command lines, agents, keys. See attack.ts.
import type { Attack } from './attack.ts';

const perl = String.raw;

/** By these programs find the gateway. */
const NETWORK =
  'http_proxy HTTP_PROXY https_proxy HTTPS_PROXY all_proxy ALL_PROXY no_proxy NO_PROXY NODE_USE_ENV_PROXY YARN_HTTP_PROXY YARN_HTTPS_PROXY ELECTRON_GET_USE_PROXY JAVA_TOOL_OPTIONS';

export const IDENTITY_ATTACKS: readonly Attack[] = [
  {
    id: 'A135',
    what: 'find a variable that is not on the list',
    perl: perl`my %may = map { $_ => 1 } qw(PATH HOME USER LOGNAME SHELL TMPDIR TERM LANG PWD OLDPWD SHLVL _ AGS_SANDBOX AGS_TASK ${NETWORK}); for (sort keys %ENV) { print "$_ = there\n" unless $may{$_} } print "searched\n"`,
    expect: ['searched'],
  },
  {
    id: 'A135',
    what: "find the caller's variables in the environment of any process",
    perl: perl`my %may = map { $_ => 1 } qw(PATH HOME USER LOGNAME SHELL TMPDIR TERM LANG PWD OLDPWD SHLVL _ AGS_SANDBOX AGS_TASK AGS_RUN ${NETWORK}); for my $file (glob '/proc/[0-9]*/environ') { for (split /\0/, slurp($file) // '') { my ($name) = split /=/; print "$file $name = there\n" unless $may{$name} } } print "searched\n"`,
    expect: ['searched'],
  },
  {
    id: 'A142',
    what: 'read the arguments that the sandbox was made with',
    perl: perl`for my $file (glob '/proc/[0-9]*/cmdline') { my @words = split /\0/, slurp($file) // ''; for (@words) { print "$file $_ = there\n" if /^--(setenv|bind|ro-bind|seccomp|uid|args=)/ || (/\Q$V{STATE}/ && !/perl/) } } print "searched\n"`,
    expect: ['searched'],
  },
  {
    id: 'A143',
    what: 'reach key agents and message buses by their variables',
    perl: perl`for (qw(SSH_AUTH_SOCK SSH_AGENT_PID GPG_AGENT_INFO DBUS_SESSION_BUS_ADDRESS XDG_RUNTIME_DIR DISPLAY WAYLAND_DISPLAY XAUTHORITY KRB5CCNAME AWS_PROFILE AWS_SECRET_ACCESS_KEY GITHUB_TOKEN SECRET_TOKEN DOCKER_HOST KUBECONFIG)) { line(exists $ENV{$_} ? 'set' : 'unset', $_) }`,
    expect: ['unset'],
  },
  {
    id: 'A142',
    what: 'find a secret in the files of the sandbox itself',
    perl: perl`look($_) for "$V{PROJECT}/.git/config.worktree", "$V{PROJECT}/.git/logs", "$V{PROJECT}/.git/credentials", "$V{PROJECT}/.git/FETCH_HEAD"; my $config = slurp("$V{PROJECT}/.git/config") // ''; line($config =~ /remote|url|credential|token|helper|hooksPath|sshCommand|filter/i ? 'there' : 'ENOENT', 'config'); opendir my $d, "$V{PROJECT}/.git/hooks"; line((grep { !/^\.\.?$/ } readdir $d) ? 'there' : 'ENOENT', 'hooks')`,
    expect: ['ENOENT'],
  },
  {
    id: 'A39',
    what: 'find an endpoint of ags itself',
    perl: perl`for my $dir ('/run', '/run/ags', '/tmp', $V{HOME}, "$V{PROJECT}/.git") { opendir my $d, $dir; for (readdir $d) { print "$dir/$_ = socket\n" if -S "$dir/$_" } } print "searched\n"`,
    expect: ['searched'],
  },
];
