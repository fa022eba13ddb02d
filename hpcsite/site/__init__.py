"""The site model: an Ansible inventory folder read into a frozen `Site`."""
