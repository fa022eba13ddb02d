"""What to run in which order: playbooks run by ansible-runner, its events turned into ours."""
